package bench;

import java.util.List;
import java.util.stream.Collectors;

/** A figure a round, as measurement.py reads it; {@code name} and {@code extra} are one more list. */
record Sample(List<Double> rounds, long operations, String name, List<Double> extra) {

    Sample(List<Double> rounds, long operations) {
        this(rounds, operations, "", List.of());
    }

    String json() {
        String more = name.isEmpty() ? "" : "\"" + name + "\": " + list(extra);
        return "{\"rounds\": " + list(rounds) + ", \"operations\": " + operations + ", \"extra\": {" + more + "}}";
    }

    private static String list(List<Double> figures) {
        return figures.stream().map(String::valueOf).collect(Collectors.joining(", ", "[", "]"));
    }
}
