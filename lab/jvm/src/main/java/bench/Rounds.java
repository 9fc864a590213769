package bench;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The cost of one operation, as in rounds.py: warmed up, the empty loop deducted. */
final class Rounds {
    /** Keeps the compiler from leaving out what nobody looks at. */
    static volatile long sink;

    /** Some operations of one kind; {@code prepare} and {@code restore} are not timed. */
    interface Work {
        /** Get ready for so many operations, or fewer; return how many. */
        int prepare(int count);

        void run();

        /** The same loop with nothing in it. */
        void empty();

        default void restore() {
        }
    }

    static Sample cost(Effort effort, Work work) {
        int count = Math.min(1_000, effort.most());
        long spent = 1;
        double cost = Double.MAX_VALUE;
        for (WarmUp warm = new WarmUp(effort); warm.another(cost); ) {
            int done = work.prepare(count);
            long start = System.nanoTime();
            work.run();
            spent = Math.max(1, System.nanoTime() - start);
            work.empty();
            work.restore();
            cost = (double) spent / done;
            long chunks = Math.max(1, Math.round(effort.seconds() * 1e9 / spent));
            count = (int) Math.min(chunks * count, effort.most());
        }
        List<Double> rounds = new ArrayList<>();
        List<Double> idle = new ArrayList<>();
        int operations = 0;
        Patience patience = new Patience(effort);
        while (patience.another()) {
            operations = work.prepare(count);
            long start = System.nanoTime();
            work.run();
            spent = System.nanoTime() - start;
            start = System.nanoTime();
            work.empty();
            long nothing = System.nanoTime() - start;
            work.restore();
            rounds.add((double) spent / operations);
            idle.add((double) nothing / operations);
        }
        List<Double> ordered = new ArrayList<>(idle);
        Collections.sort(ordered);
        double deducted = ordered.get(ordered.size() / 2);
        rounds.replaceAll(figure -> figure - deducted);
        return new Sample(rounds, operations, "empty", idle);
    }

    private Rounds() {
    }
}
