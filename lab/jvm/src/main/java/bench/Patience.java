package bench;

/** Ends a series of rounds that takes too long, as in rounds.py. */
final class Patience {
    private final long until;
    private final int most;
    private int done;

    Patience(Effort effort) {
        until = System.nanoTime() + Math.round(effort.patience() * 1e9);
        most = effort.rounds();
    }

    boolean another() {
        boolean over = done == most || (done >= 3 && System.nanoTime() > until);
        done++;
        return !over;
    }
}
