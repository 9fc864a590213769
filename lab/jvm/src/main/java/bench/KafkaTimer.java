package bench;

import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/** Kafka's SystemTimer, with a thread that advances it as Kafka's own reaper does, but can be held. */
final class KafkaTimer implements Rival {
    private static final long REAPER_MILLIS = 200; // as in Kafka

    private final SystemTimer timer = new SystemTimer("benchmark");
    private final Thread reaper = new Thread(this::reap, "reaper");
    private volatile boolean hold;
    private volatile boolean held;

    KafkaTimer() {
        reaper.setDaemon(true);
        reaper.start();
    }

    @Override
    public Object start(long millis) {
        Nothing task = new Nothing(millis);
        timer.add(task);
        return task;
    }

    @Override
    public void start(long millis, Runnable task) {
        timer.add(new Something(millis, task));
    }

    @Override
    public void stop(Object handle) {
        ((TimerTask) handle).cancel();
    }

    @Override
    public void hold() throws InterruptedException {
        hold = true;
        while (!held) {
            Thread.sleep(1);
        }
    }

    @Override
    public void release() {
        hold = false;
        LockSupport.unpark(reaper);
    }

    @Override
    public void close() throws Exception {
        hold = false;
        reaper.interrupt();
        reaper.join();
        timer.close();
    }

    private void reap() {
        try {
            while (true) {
                if (hold) {
                    held = true;
                    LockSupport.park(this);
                } else {
                    held = false;
                    timer.advanceClock(REAPER_MILLIS);
                }
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private static final class Nothing extends TimerTask {
        Nothing(long millis) {
            super(millis);
        }

        @Override
        public void run() {
        }
    }

    private static final class Something extends TimerTask {
        private final Runnable task;

        Something(long millis, Runnable task) {
            super(millis);
            this.task = task;
        }

        @Override
        public void run() {
            task.run();
        }
    }
}
