package bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToLongFunction;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.purgatory.TopicPartitionOperationKey;
import org.apache.kafka.server.util.timer.SystemTimer;

/** Kafka's purgatory: watch and complete, as in purgatories.py. */
final class Purgatories {
    private static final int KEYS = 1_000;
    private static final int PURGE_INTERVAL = 1_000; // as in Kafka
    private static final long FAR_MILLIS = 200_000;
    private static final long SHORT_MILLIS = 200; // of the enqueue benchmark

    static Sample measure(String row, int size, Effort effort) throws Exception {
        DelayedOperationPurgatory<Waiting> purgatory = new DelayedOperationPurgatory<>(
                "benchmark", new SystemTimer("benchmark"), 0, PURGE_INTERVAL, true, true);
        try {
            switch (row) {
                case "watch": return watch(purgatory, size, effort);
                case "watch_made": return watchMade(purgatory, size, effort);
                case "watch_keys": return watchKeys(purgatory, size, effort);
                case "watch_hot": return watchHot(purgatory, size, effort);
                case "enqueue": return enqueue(purgatory, size, effort);
                default: throw new IllegalArgumentException("no row " + row);
            }
        } finally {
            purgatory.shutdown();
        }
    }

    private static Sample watch(DelayedOperationPurgatory<Waiting> purgatory, int size, Effort effort) {
        fill(purgatory, size);
        List<List<TopicPartitionOperationKey>> keys = keyLists("orders");
        return rounds(effort, count -> {
            long began = System.nanoTime();
            for (int i = 0; i < count; i++) {
                List<TopicPartitionOperationKey> key = keys.get(i % KEYS);
                Waiting operation = new Waiting(FAR_MILLIS);
                purgatory.tryCompleteElseWatch(operation, key);
                operation.ready = true;
                purgatory.checkAndComplete(key.get(0));
            }
            return System.nanoTime() - began;
        });
    }

    private static Sample watchMade(DelayedOperationPurgatory<Waiting> purgatory, int size, Effort effort) {
        fill(purgatory, size);
        List<List<TopicPartitionOperationKey>> keys = keyLists("orders");
        return rounds(effort, count -> {
            Waiting[] operations = new Waiting[count];
            for (int i = 0; i < count; i++) {
                operations[i] = new Waiting(FAR_MILLIS);
            }
            long began = System.nanoTime();
            for (int i = 0; i < count; i++) {
                List<TopicPartitionOperationKey> key = keys.get(i % KEYS);
                purgatory.tryCompleteElseWatch(operations[i], key);
                operations[i].ready = true;
                purgatory.checkAndComplete(key.get(0));
            }
            return System.nanoTime() - began;
        });
    }

    /** Let so many operations wait on keys of their own. */
    private static void fill(DelayedOperationPurgatory<Waiting> purgatory, int size) {
        List<List<TopicPartitionOperationKey>> others = keyLists("payments");
        for (int i = 0; i < size; i++) {
            purgatory.tryCompleteElseWatch(new Waiting(FAR_MILLIS), others.get(i % KEYS));
        }
    }

    private static Sample watchKeys(
            DelayedOperationPurgatory<Waiting> purgatory, int size, Effort effort) {
        List<TopicPartitionOperationKey> keys = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            keys.add(new TopicPartitionOperationKey("key", i));
        }
        return rounds(effort, count -> {
            int operations = Math.max(1, count / size);
            long began = System.nanoTime();
            for (int i = 0; i < operations; i++) {
                Waiting operation = new Waiting(FAR_MILLIS);
                purgatory.tryCompleteElseWatch(operation, keys);
                operation.ready = true;
                purgatory.checkAndComplete(keys.get(0));
            }
            return (System.nanoTime() - began) * count / ((long) operations * size);
        });
    }

    private static Sample watchHot(
            DelayedOperationPurgatory<Waiting> purgatory, int size, Effort effort) {
        List<TopicPartitionOperationKey> hot = List.of(new TopicPartitionOperationKey("hot", 0));
        List<Double> rounds = new ArrayList<>();
        long warmUntil = System.nanoTime() + Math.round(effort.warm() * 1e9);
        while (System.nanoTime() < warmUntil) {
            hotRound(purgatory, hot, size);
        }
        Patience patience = new Patience(effort);
        while (patience.another()) {
            rounds.add((double) hotRound(purgatory, hot, size) / size);
        }
        return new Sample(rounds, size);
    }

    private static long hotRound(
            DelayedOperationPurgatory<Waiting> purgatory, List<TopicPartitionOperationKey> hot, int size) {
        long began = System.nanoTime();
        Waiting[] operations = new Waiting[size];
        for (int i = 0; i < size; i++) {
            operations[i] = new Waiting(FAR_MILLIS);
        }
        for (Waiting operation : operations) {
            purgatory.tryCompleteElseWatch(operation, hot);
        }
        for (Waiting operation : operations) {
            operation.ready = true;
        }
        int completed = purgatory.checkAndComplete(hot.get(0));
        long spent = System.nanoTime() - began;
        if (completed != size) {
            throw new IllegalStateException("one check completed " + completed + " of " + size);
        }
        return spent;
    }

    private static Sample enqueue(
            DelayedOperationPurgatory<Waiting> purgatory, int size, Effort effort) throws InterruptedException {
        List<List<TopicPartitionOperationKey>> keys = keyLists("orders");
        int count = Math.min(size, effort.enqueue());
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        List<Double> rounds = new ArrayList<>();
        List<Double> cpu = new ArrayList<>();
        int warm = effort.warm() > 1 ? 5 : 2;
        Patience patience = new Patience(effort);
        for (int round = -warm; round < 0 || patience.another(); round++) {
            Waiting.expired = 0;
            long before = system.getProcessCpuTime();
            long began = System.nanoTime();
            for (int i = 0; i < count; i++) {
                purgatory.tryCompleteElseWatch(new Waiting(SHORT_MILLIS), keys.get(i % KEYS));
            }
            while (Waiting.expired < count) {
                Thread.sleep(1);
            }
            long spent = System.nanoTime() - began;
            if (round >= 0) {
                cpu.add((double) (system.getProcessCpuTime() - before) / count);
                rounds.add(count * 1e9 / (spent - SHORT_MILLIS * 1_000_000));
            }
        }
        return new Sample(rounds, count, "cpu", cpu);
    }

    /** As {@code Rounds.cost}, of work that times itself. */
    private static Sample rounds(Effort effort, IntToLongFunction work) {
        int count = Math.min(1_000, effort.most());
        double cost = Double.MAX_VALUE;
        for (WarmUp warm = new WarmUp(effort); warm.another(cost); ) {
            long spent = Math.max(1, work.applyAsLong(count));
            cost = (double) spent / count;
            long chunks = Math.max(1, Math.round(effort.seconds() * 1e9 / spent));
            count = (int) Math.min(chunks * count, effort.most());
        }
        List<Double> rounds = new ArrayList<>();
        Patience patience = new Patience(effort);
        while (patience.another()) {
            rounds.add((double) work.applyAsLong(count) / count);
        }
        return new Sample(rounds, count);
    }

    private static List<List<TopicPartitionOperationKey>> keyLists(String topic) {
        List<List<TopicPartitionOperationKey>> lists = new ArrayList<>();
        for (int i = 0; i < KEYS; i++) {
            lists.add(List.of(new TopicPartitionOperationKey(topic, i)));
        }
        return lists;
    }

    /** An operation whose condition is one flag. */
    private static final class Waiting extends DelayedOperation {
        static volatile int expired; // counted by the timer's one executor thread

        private volatile boolean ready;

        Waiting(long millis) {
            super(millis);
        }

        @Override
        public boolean tryComplete() {
            return ready && forceComplete();
        }

        @Override
        public void onComplete() {
        }

        @Override
        public void onExpiration() {
            expired++;
        }
    }

    private Purgatories() {
    }
}
