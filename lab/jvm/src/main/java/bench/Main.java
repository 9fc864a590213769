package bench;

/**
 * A row of a rival in a fresh JVM: {@code Main RIVAL ROW SIZE} and the numbers of {@link Effort}. Prints a line of JSON.
 */
public final class Main {
    public static void main(String[] args) throws Exception {
        String rival = args[0];
        String row = args[1];
        Effort effort = Effort.parse(args, 3);
        System.out.println(measure(rival, row, Integer.parseInt(args[2]), effort).json());
        System.out.flush();
        System.exit(0); // no waiting for anybody's threads
    }

    private static Sample measure(String rival, String row, int size, Effort effort) throws Exception {
        if (row.startsWith("watch") || row.equals("enqueue")) {
            return Purgatories.measure(row, size, effort);
        }
        Rival timer = rival.equals("kafka") ? new KafkaTimer() : new ThreadPoolHeap();
        try {
            return measure(timer, row, size, effort);
        } finally {
            timer.close();
        }
    }

    private static Sample measure(Rival timer, String row, int size, Effort effort) throws Exception {
        switch (row) {
            case "pair": return Costs.pair(timer, size, effort);
            case "start": return Costs.start(timer, size, effort);
            case "stop": return Costs.stop(timer, size, effort);
            case "refresh": return Costs.refresh(timer, size, effort);
            case "expiry": return Storms.expiry(timer, size, effort);
            case "stall_start": return Storms.stallStart(timer, size, effort);
            case "stall_expiry": return Storms.stallExpiry(timer, size, effort);
            case "stall_stop": return Storms.stallStop(timer, size, effort);
            case "memory": return Room.memory(timer, size);
            case "lateness": return Storms.lateness(timer, size, effort);
            default: throw new IllegalArgumentException("no row " + row);
        }
    }

    private Main() {
    }
}
