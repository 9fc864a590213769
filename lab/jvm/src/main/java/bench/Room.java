package bench;

import java.util.List;

/** What pending timers weigh: live heap after full collections. */
final class Room {
    static Sample memory(Rival timer, int size) throws InterruptedException {
        Delays far = Delays.far();
        for (Object handle : Costs.fill(timer, 100_000, far)) { // grow what grows but once
            timer.stop(handle);
        }
        Object[] held = new Object[size];
        long before = live();
        for (int i = 0; i < size; i++) {
            held[i] = timer.start(far.next());
        }
        long after = live();
        Rounds.sink = held.length;
        return new Sample(List.of((double) (after - before) / size), size);
    }

    private static long live() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(20);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private Room() {
    }
}
