package lab;

import com.sun.management.GarbageCollectionNotificationInfo;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import javax.management.NotificationEmitter;
import javax.management.openmbean.CompositeData;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.purgatory.TopicPartitionOperationKey;
import org.apache.kafka.server.util.timer.SystemTimer;

/** One run of the published benchmark on Kafka's own purgatory; see lab/experiments/enqueue.py. */
public final class Enqueue {
    private static final long TIMEOUT_MILLIS = 200;
    private static final long MILLI = 1_000_000;
    private static final double QUARTILE = 0.674490;

    private final int count;
    private final double rate;
    private final double p50;
    private final double p75;
    private final int size;
    private final AtomicInteger ended = new AtomicInteger();
    private final AtomicInteger expired = new AtomicInteger();
    private final long[] late;
    private volatile boolean stop;

    private Enqueue(int count, double rate, double p50, double p75, int size) {
        this.count = count;
        this.rate = rate;
        this.p50 = p50;
        this.p75 = p75;
        this.size = size;
        this.late = new long[count];
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        double rate = Double.parseDouble(args[1]);
        double p50 = Double.parseDouble(args[2]);
        double p75 = Double.parseDouble(args[3]);
        int size = Integer.parseInt(args[4]);
        int purgeInterval = Integer.parseInt(args[5]);
        long seconds = Long.parseLong(args[6]);
        double warm = Double.parseDouble(args[7]);
        // The compiler is given a while first, on a purgatory of its own.
        int warmUp = (int) Math.min(count, rate * warm);
        new Enqueue(warmUp, rate, p50, p75, size).run(purgeInterval, seconds, false);
        new Enqueue(count, rate, p50, p75, size).run(purgeInterval, seconds, true);
        System.exit(0);
    }

    private void run(int purgeInterval, long seconds, boolean tell) throws InterruptedException {
        Random random = new Random(17);
        long[] arrivals = new long[count];
        long[] latencies = new long[count];
        double at = 0;
        double sigma = Math.log(p75 / p50) / QUARTILE;
        for (int i = 0; i < count; i++) {
            at += -Math.log(1 - random.nextDouble()) * 1e9 / rate;
            arrivals[i] = (long) at;
            latencies[i] = (long) (Math.exp(Math.log(p50) + random.nextGaussian() * sigma) * MILLI);
        }
        System.gc();
        AtomicLong longest = new AtomicLong();
        long collectorBefore = collectorMillis();
        if (tell) {
            listen(longest);
        }
        DelayedOperationPurgatory<Request> purgatory =
                new DelayedOperationPurgatory<>("lab", new SystemTimer("lab"), 0, purgeInterval, true, true);
        List<TopicPartitionOperationKey> keys = List.of(
                new TopicPartitionOperationKey("fakeKey", 17),
                new TopicPartitionOperationKey("fakeKey", 42),
                new TopicPartitionOperationKey("fakeKey", 73));
        DelayQueue<Scheduled> queue = new DelayQueue<>();
        Thread completer = new Thread(() -> complete(queue), "completer");
        int[] most = new int[2];
        Thread observer = new Thread(() -> observe(purgatory, most), "observer");
        completer.setDaemon(true);
        observer.setDaemon(true);
        completer.start();
        observer.start();

        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long began = System.nanoTime();
        long givesUp = began + seconds * 1_000_000_000L;
        int submitted = 0;
        int expected = 0;
        for (; submitted < count; submitted++) {
            long now = System.nanoTime();
            if (began + arrivals[submitted] > now) {
                LockSupport.parkNanos(began + arrivals[submitted] - now);
                now = System.nanoTime();
            } else if (now > givesUp) {
                break;
            }
            Request request = new Request(now, latencies[submitted]);
            purgatory.tryCompleteElseWatch(request, keys);
            if (latencies[submitted] < TIMEOUT_MILLIS * MILLI) {
                queue.offer(new Scheduled(request));
            } else {
                expected++;
            }
        }
        long enqueued = System.nanoTime();
        while (ended.get() < submitted && System.nanoTime() < enqueued + 30_000_000_000L) {
            Thread.sleep(2);
        }
        long drained = System.nanoTime();
        cpu = system.getProcessCpuTime() - cpu;
        stop = true;
        completer.interrupt();
        observer.join();
        if (!tell) {
            return;
        }
        int times = Math.min(expired.get(), late.length);
        Arrays.sort(late, 0, times);
        int early = 0;
        while (early < times && late[early] < 0) {
            early++;
        }
        tell("achieved rate", submitted * 1e9 / (enqueued - began), "requests/s");
        tell("sustained rate", submitted * 1e9 / (drained - began - TIMEOUT_MILLIS * MILLI), "requests/s");
        tell("target rate", rate, "requests/s");
        tell("submitted", submitted, "requests");
        tell("not ended", submitted - ended.get(), "requests");
        tell("CPU a request", cpu / 1e3 / submitted, "us");
        tell("CPU", cpu / 1e9, "s");
        tell("collector", collectorMillis() - collectorBefore, "ms");
        tell("longest pause", longest.get(), "ms");
        tell("watched, most", most[0], "watches");
        tell("in the timer, most", most[1], "operations");
        tell("timed out", (double) expired.get() / submitted, "share");
        tell("timed out, expected", (double) expected / submitted, "share");
        tell("lateness, median", at(times, 0.5), "ms");
        tell("lateness, 99 %", at(times, 0.99), "ms");
        tell("lateness, most", at(times, 1.0), "ms");
        tell("early", early, "requests");
        tell("until all had ended", (drained - enqueued) / 1e9, "s");
        tell("out of memory", 0, "runs");
    }

    private double at(int times, double quantile) {
        return times == 0 ? 0 : (double) late[(int) Math.min(times * quantile, times - 1)] / MILLI;
    }

    private void complete(DelayQueue<Scheduled> queue) {
        try {
            while (!stop) {
                Scheduled scheduled = queue.poll(100, TimeUnit.MILLISECONDS);
                if (scheduled != null) {
                    scheduled.request.forceComplete();
                }
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private void observe(DelayedOperationPurgatory<Request> purgatory, int[] most) {
        while (!stop) {
            most[0] = Math.max(most[0], purgatory.watched());
            most[1] = Math.max(most[1], purgatory.numDelayed());
            LockSupport.parkNanos(20 * MILLI); // `watched` walks every list: not too often
        }
    }

    private static void listen(AtomicLong longest) {
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            ((NotificationEmitter) collector).addNotificationListener((notification, handback) -> {
                GarbageCollectionNotificationInfo info =
                        GarbageCollectionNotificationInfo.from((CompositeData) notification.getUserData());
                longest.accumulateAndGet(info.getGcInfo().getDuration(), Math::max);
            }, null, null);
        }
    }

    private static long collectorMillis() {
        long total = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            total += Math.max(0, collector.getCollectionTime());
        }
        return total;
    }

    private static void tell(String metric, double value, String unit) {
        System.out.printf(Locale.ROOT, "%s\t%.9g\t%s%n", metric, value, unit);
    }

    /** Completes when its latency is over. */
    private final class Request extends DelayedOperation {
        private final long completesAt;
        private final long deadline;
        private final byte[] data = new byte[size];

        Request(long now, long latency) {
            super(TIMEOUT_MILLIS);
            completesAt = now + latency;
            deadline = now + TIMEOUT_MILLIS * MILLI;
        }

        @Override
        public boolean tryComplete() {
            return System.nanoTime() >= completesAt && forceComplete();
        }

        @Override
        public void onComplete() {
            ended.incrementAndGet();
        }

        @Override
        public void onExpiration() {
            int number = expired.getAndIncrement();
            if (number < late.length) {
                late[number] = System.nanoTime() - deadline;
            }
        }
    }

    /** A request in the completer's queue. */
    private static final class Scheduled implements Delayed {
        private final Request request;

        Scheduled(Request request) {
            this.request = request;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(request.completesAt - System.nanoTime(), TimeUnit.NANOSECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(request.completesAt, ((Scheduled) other).request.completesAt);
        }
    }
}
