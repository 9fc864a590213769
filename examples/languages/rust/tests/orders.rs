mod broker;

use std::{env, fs, time::Duration};

use broker::Broker;
use rdkafka::ClientConfig;
use rdkafka::producer::{FutureProducer, FutureRecord};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Scenario {
    arguments: Vec<String>,
    topic: Value,
    first: String,
    follower: u32,
    second: String,
    request_timeout_ms: u32,
    outcome: Outcome,
}

#[derive(Deserialize)]
struct Outcome {
    error: String,
    waited: f64,
    records: Vec<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_produce_times_out_while_a_follower_is_paused() {
    let scenario = scenario();
    let broker = Broker::start(&scenario.arguments);
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", &broker.servers)
        .set("acks", "all")
        .set("retries", "0")
        .set("request.timeout.ms", scenario.request_timeout_ms.to_string())
        .create()
        .unwrap();
    let topic = scenario.topic["name"].as_str().unwrap();
    let send = |value| producer.send(FutureRecord::<(), str>::to(topic).payload(value), Duration::ZERO);
    broker.call("createTopic", &[], Some(&scenario.topic));
    send(&scenario.first).await.unwrap();

    let follower = scenario.follower.to_string();
    broker.call("pauseBroker", &[("broker", &follower)], None);
    let (ended, ()) = tokio::join!(send(&scenario.second), async {
        let seen = broker.call("listWaiting", &[("kind", "Produce"), ("count", "1")], None);
        let left = &seen["waiting"][0]["left"];
        assert_eq!(left.as_f64(), Some(scenario.outcome.waited));
        broker.call("advanceClock", &[], Some(&json!({ "seconds": left })));
    });
    let (error, _) = ended.expect_err("a time-out");
    let code = error.rdkafka_error_code().expect("an error of the broker");
    assert_eq!(scenario.outcome.error, kafka_name(&format!("{code:?}")));

    broker.call("resumeBroker", &[("broker", &follower)], None);
    let kept = broker.call("readRecords", &[("topic", topic)], None);
    let values: Vec<_> = kept["records"].as_array().unwrap().iter().map(|one| one["value"].as_str().unwrap()).collect();
    assert_eq!(scenario.outcome.records, values);
}

/// Kafka's name of an error that rdkafka calls RequestTimedOut.
fn kafka_name(name: &str) -> String {
    let parts =
        name.char_indices().map(|(at, one)| if at > 0 && one.is_uppercase() { format!("_{one}") } else { one.into() });
    parts.collect::<String>().to_uppercase()
}

fn scenario() -> Scenario {
    let path = env::var("SCENARIO").unwrap_or_else(|_| "../scenario.json".into());
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
