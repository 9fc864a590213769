package bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;

/** Storms: many expiries at once, and the longest gap of the caller's thread, as in storms.py. */
final class Storms {
    private static final int A_BEAT = 100;
    private static final long SOONEST_MILLIS = 2; // Kafka runs what is due within a tick from inside the start
    private static final long MARGIN_MILLIS = 10;

    static Sample expiry(Rival timer, int size, Effort effort) throws InterruptedException {
        double spread = Math.min(0.5, size * 4e-6);
        for (Patience warm = warm(effort); warm.another(); ) {
            expiries(timer, Math.min(size, 100_000), Math.min(spread, 0.05));
        }
        List<Double> rounds = new ArrayList<>();
        Patience patience = new Patience(effort);
        while (patience.another()) {
            rounds.add((double) expiries(timer, size, spread) / size);
        }
        return new Sample(rounds, size);
    }

    private static long expiries(Rival timer, int size, double spread) throws InterruptedException {
        Mark mark = allDue(timer, size, spread);
        long began = System.nanoTime();
        timer.release();
        while (mark.at == 0) {
            Thread.sleep(1);
        }
        return mark.at - began;
    }

    private static Mark allDue(Rival timer, int size, double spread) throws InterruptedException {
        Delays source = new Delays(SOONEST_MILLIS / 1000.0, SOONEST_MILLIS / 1000.0 + spread);
        Mark mark = new Mark();
        timer.hold();
        for (int i = 0; i < size; i++) {
            timer.start(source.next());
        }
        long millis = SOONEST_MILLIS + Math.round(spread * 1000);
        timer.start(millis + MARGIN_MILLIS, mark);
        Thread.sleep(millis + 2 * MARGIN_MILLIS);
        return mark;
    }

    static Sample stallExpiry(Rival timer, int size, Effort effort) throws InterruptedException {
        List<Double> rounds = new ArrayList<>();
        Delays far = Delays.far();
        int warm = effort.warm() > 1 ? 3 : 1;
        Patience patience = new Patience(effort);
        for (int round = -warm; round < 0 || patience.another(); round++) {
            Mark mark = allDue(timer, size, 0);
            Gaps gaps = new Gaps();
            timer.release();
            while (mark.at == 0) {
                timer.stop(timer.start(far.next()));
                gaps.look();
            }
            if (round >= 0) {
                rounds.add((double) gaps.longest);
            }
        }
        return new Sample(rounds, size);
    }

    static Sample stallStart(Rival timer, int size, Effort effort) {
        List<Double> rounds = new ArrayList<>();
        Delays far = Delays.far();
        int warm = effort.warm() > 1 ? 3 : 1;
        Patience patience = new Patience(effort);
        for (int round = -warm; round < 0 || patience.another(); round++) {
            Object[] held = new Object[size];
            Gaps gaps = new Gaps();
            for (int i = 0; i < size; i++) {
                held[i] = timer.start(far.next());
                if (i % A_BEAT == A_BEAT - 1) {
                    gaps.look();
                }
            }
            if (round >= 0) {
                rounds.add((double) gaps.longest);
            }
            for (Object handle : held) {
                timer.stop(handle);
            }
        }
        return new Sample(rounds, size);
    }

    static Sample stallStop(Rival timer, int size, Effort effort) {
        List<Double> rounds = new ArrayList<>();
        Delays far = Delays.far();
        Random source = new Random(3);
        int warm = effort.warm() > 1 ? 3 : 1;
        Patience patience = new Patience(effort);
        for (int round = -warm; round < 0 || patience.another(); round++) {
            List<Object> held = new ArrayList<>(Arrays.asList(Costs.fill(timer, size, far)));
            Collections.shuffle(held, source);
            Gaps gaps = new Gaps();
            for (int i = 0; i < size; i++) {
                timer.stop(held.get(i));
                if (i % A_BEAT == A_BEAT - 1) {
                    gaps.look();
                }
            }
            if (round >= 0) {
                rounds.add((double) gaps.longest);
            }
        }
        return new Sample(rounds, size);
    }

    static Sample lateness(Rival timer, int size, Effort effort) throws InterruptedException {
        for (Patience warm = warm(effort); warm.another(); ) {
            expiries(timer, 10_000, 0.05);
        }
        int count = Math.min(size, effort.lateCount());
        long[] late = new long[count];
        AtomicInteger ran = new AtomicInteger();
        Random source = new Random(4);
        double ahead = effort.lateSeconds() / 10;
        for (int i = 0; i < count; i++) {
            long millis = Math.round(1000 * (ahead + effort.lateSeconds() * source.nextDouble()));
            long deadline = System.nanoTime() + millis * 1_000_000;
            timer.start(millis, () -> late[ran.getAndIncrement()] = System.nanoTime() - deadline);
        }
        while (ran.get() < count) {
            Thread.sleep(10);
        }
        Arrays.sort(late);
        int keep = 2_000;
        List<Double> quantiles = new ArrayList<>();
        for (int step = 0; step < keep; step++) {
            quantiles.add((double) late[(int) Math.round((double) step * (count - 1) / (keep - 1))]);
        }
        return new Sample(List.of((double) late[count / 2]), count, "late", quantiles);
    }

    private static Patience warm(Effort effort) {
        return new Patience(new Effort(1_000, 0, 0, effort.warm(), 0, 0, 0, 0));
    }

    /** The last task of a storm: notes when it ran. */
    private static final class Mark implements Runnable {
        volatile long at;

        @Override
        public void run() {
            at = System.nanoTime();
        }
    }

    /** The longest time between two looks at the clock. */
    private static final class Gaps {
        private long last = System.nanoTime();
        private long longest;

        void look() {
            long now = System.nanoTime();
            longest = Math.max(longest, now - last);
            last = now;
        }
    }

    private Storms() {
    }
}
