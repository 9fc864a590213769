// What needs no Kafka client: records and offsets are put there, and a fault waits for your program's request.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startBroker } from "./broker.js";

let broker;

before(async () => {
  broker = await startBroker(["--port", "0", "--control"]);
});

after(async () => {
  await broker?.stop();
});

test("a program finds what it needs, and a fault", async () => {
  const { control } = broker;
  await control.createTopic({}, { name: "orders" });
  await control.seedRecords({ topic: "orders" }, { records: [{ key: "till-1", value: "book" }, { value: "lamp" }] });
  await control.commitOffsets({ group: "billing" }, { offsets: [{ topic: "orders", partition: 0, offset: 1 }] });
  const { id } = await control.orderFault({}, {
    action: "fail", api: "Produce", error: "NOT_LEADER_OR_FOLLOWER", topic: "orders", times: 1,
  });

  // Your program runs here.

  const { offsets: [{ lag }] } = await control.readGroup({ group: "billing" });
  assert.equal(lag, 1);
  await assert.rejects(control.awaitFault({ fault: id, timeout: 0 }), /after 0 s: 0 of 1 hits of <Fault: NOT_LEADER_OR_/);
});
