package bench;

import java.util.Random;

/** Start, stop and refresh beside n pending timers, as in costs.py. */
final class Costs {
    static Sample pair(Rival timer, int size, Effort effort) {
        Delays source = Delays.far();
        Object[] held = fill(timer, size, source);
        Sample sample = Rounds.cost(effort, new Rounds.Work() {
            private long[] delays;

            @Override
            public int prepare(int count) {
                delays = source.some(count);
                return count;
            }

            @Override
            public void run() {
                for (long delay : delays) {
                    timer.stop(timer.start(delay));
                }
            }

            @Override
            public void empty() {
                walk(delays);
            }
        });
        Rounds.sink = held.length;
        return sample;
    }

    static Sample start(Rival timer, int size, Effort effort) {
        Delays source = Delays.far();
        Object[] held = fill(timer, size, source);
        Sample sample = Rounds.cost(effort, new Rounds.Work() {
            private long[] delays;
            private Object[] started;

            @Override
            public int prepare(int count) {
                delays = source.some(count);
                started = new Object[count];
                return count;
            }

            @Override
            public void run() {
                for (int i = 0; i < delays.length; i++) {
                    started[i] = timer.start(delays[i]);
                }
            }

            @Override
            public void empty() {
                walk(delays);
            }

            @Override
            public void restore() {
                for (Object handle : started) {
                    if (handle != null) {
                        timer.stop(handle);
                    }
                }
            }
        });
        Rounds.sink = held.length;
        return sample;
    }

    static Sample stop(Rival timer, int size, Effort effort) {
        Delays source = Delays.far();
        Object[] held = fill(timer, size, source);
        return Rounds.cost(effort, new Rounds.Work() {
            private final Order order = new Order(size);
            private int[] picked;
            private Object[] handles;

            @Override
            public int prepare(int count) {
                picked = order.pick(count);
                handles = new Object[picked.length];
                for (int i = 0; i < picked.length; i++) {
                    handles[i] = held[picked[i]];
                }
                return picked.length;
            }

            @Override
            public void run() {
                for (Object handle : handles) {
                    timer.stop(handle);
                }
            }

            @Override
            public void empty() {
                long seen = 0;
                for (Object handle : handles) {
                    seen += handle == null ? 1 : 2;
                }
                Rounds.sink = seen;
            }

            @Override
            public void restore() {
                for (int index : picked) {
                    held[index] = timer.start(source.next());
                }
            }
        });
    }

    static Sample refresh(Rival timer, int size, Effort effort) {
        Delays source = Delays.far();
        Object[] held = fill(timer, size, source);
        long delay = source.next();
        return Rounds.cost(effort, new Rounds.Work() {
            private final Order order = new Order(size);
            private int[] picked;

            @Override
            public int prepare(int count) {
                picked = order.pick(count);
                return picked.length;
            }

            @Override
            public void run() {
                for (int index : picked) {
                    timer.stop(held[index]);
                    held[index] = timer.start(delay);
                }
            }

            @Override
            public void empty() {
                long seen = 0;
                for (int index : picked) {
                    seen += held[index] == null ? 1 : 2;
                }
                Rounds.sink = seen;
            }
        });
    }

    static Object[] fill(Rival timer, int size, Delays source) {
        Object[] held = new Object[size];
        for (int i = 0; i < size; i++) {
            held[i] = timer.start(source.next());
        }
        return held;
    }

    private static void walk(long[] delays) {
        long sum = 0;
        for (long delay : delays) {
            sum += delay;
        }
        Rounds.sink = sum;
    }

    /** Picks different places of n at random. */
    private static final class Order {
        private final Random source = new Random(2);
        private final int[] places;

        Order(int size) {
            places = new int[size];
            for (int i = 0; i < size; i++) {
                places[i] = i;
            }
        }

        int[] pick(int count) {
            int[] picked = new int[Math.min(count, places.length)];
            for (int i = 0; i < picked.length; i++) {
                int other = i + source.nextInt(places.length - i);
                picked[i] = places[other];
                places[other] = places[i];
                places[i] = picked[i];
            }
            return picked;
        }
    }

    private Costs() {
    }
}
