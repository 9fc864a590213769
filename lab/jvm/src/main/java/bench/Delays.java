package bench;

import java.util.Random;

/** Random delays, as in filling.py. They repeat after a while. */
final class Delays {
    private final long[] millis = new long[100_000];
    private int next;

    Delays(double shortest, double longest) {
        Random source = new Random(1);
        for (int i = 0; i < millis.length; i++) {
            millis[i] = Math.round(1000 * (shortest + (longest - shortest) * source.nextDouble()));
        }
    }

    /** Delays at which nothing expires while anything is measured. */
    static Delays far() {
        return new Delays(120, 240);
    }

    long next() {
        long delay = millis[next];
        next = next + 1 == millis.length ? 0 : next + 1;
        return delay;
    }

    long[] some(int count) {
        long[] some = new long[count];
        for (int i = 0; i < count; i++) {
            some[i] = next();
        }
        return some;
    }
}
