package bench;

/** How much work a measurement may be; see effort.py. {@code warm} is the seconds the compiler is given first. */
record Effort(
        int rounds, double seconds, int most, double patience, int lateCount, double lateSeconds, int enqueue, double warm) {

    static Effort parse(String[] args, int from) {
        return new Effort(
                Integer.parseInt(args[from]),
                Double.parseDouble(args[from + 1]),
                Integer.parseInt(args[from + 2]),
                Double.parseDouble(args[from + 3]),
                Integer.parseInt(args[from + 4]),
                Double.parseDouble(args[from + 5]),
                Integer.parseInt(args[from + 6]),
                Double.parseDouble(args[from + 7]));
    }
}
