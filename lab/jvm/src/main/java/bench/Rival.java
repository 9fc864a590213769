package bench;

/** A timer under measurement. Each JVM sees one implementation only, so that these calls are inlined. */
interface Rival {
    /** Start a timer that does nothing; return its handle. */
    Object start(long millis);

    /** Start a timer that does something. */
    void start(long millis, Runnable task);

    void stop(Object handle);

    /** Keep due timers from running, until {@code release}. */
    void hold() throws InterruptedException;

    void release();

    /** Let go of everything, for the next size to begin afresh. */
    void close() throws Exception;
}
