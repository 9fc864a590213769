package bench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The JDK's own: a heap in a thread pool of one, which takes cancelled tasks out at once. */
final class ThreadPoolHeap implements Rival {
    private static final Runnable NOTHING = () -> { };

    private final ScheduledThreadPoolExecutor pool = new ScheduledThreadPoolExecutor(1);
    private CountDownLatch gate = new CountDownLatch(0);

    ThreadPoolHeap() {
        pool.setRemoveOnCancelPolicy(true);
    }

    @Override
    public Object start(long millis) {
        return pool.schedule(NOTHING, millis, TimeUnit.MILLISECONDS);
    }

    @Override
    public void start(long millis, Runnable task) {
        pool.schedule(task, millis, TimeUnit.MILLISECONDS);
    }

    @Override
    public void stop(Object handle) {
        ((Future<?>) handle).cancel(false);
    }

    @Override
    public void hold() throws InterruptedException {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        gate = closed;
        pool.execute(() -> {
            entered.countDown();
            try {
                closed.await();
            } catch (InterruptedException end) {
                Thread.currentThread().interrupt();
            }
        });
        entered.await();
    }

    @Override
    public void release() {
        gate.countDown();
    }

    @Override
    public void close() {
        gate.countDown();
        pool.shutdownNow();
    }
}
