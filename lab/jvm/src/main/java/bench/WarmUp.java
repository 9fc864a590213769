package bench;

/** Lasts as long as the effort says and, up to five times that, until the compiler has made nothing faster for a third. */
final class WarmUp {
    private final long began = System.nanoTime();
    private final long least;
    private double best = Double.MAX_VALUE;
    private long improved = began;

    WarmUp(Effort effort) {
        least = Math.round(effort.warm() * 1e9);
    }

    /** Whether to go on, when an operation of the last round has cost so much. */
    boolean another(double cost) {
        long now = System.nanoTime();
        if (cost < 0.95 * best) {
            best = cost;
            improved = now;
        }
        return now - began < least || (now - improved < least / 3 && now - began < 5 * least);
    }
}
