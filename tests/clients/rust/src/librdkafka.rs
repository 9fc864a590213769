//! The crate `rdkafka`: librdkafka, built from its source.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header as Named, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::{Header, Outcome, Record, Security};

const PATIENCE: Duration = Duration::from_secs(60);

fn settings(bootstrap: &str, security: Option<&Security>) -> ClientConfig {
    let mut settings = ClientConfig::new();
    settings.set("bootstrap.servers", bootstrap);
    if let Some(given) = security {
        settings
            .set("security.protocol", "SASL_SSL")
            .set("ssl.ca.location", &given.ca)
            .set("sasl.mechanism", &given.mechanism)
            .set("sasl.username", &given.user)
            .set("sasl.password", &given.password);
    }
    settings
}

fn reader(settings: &ClientConfig, group: &str) -> Outcome<BaseConsumer> {
    let mut settings = settings.clone();
    settings
        .set("group.id", group)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed");
    Ok(settings.create()?)
}

fn take(consumer: &BaseConsumer, count: usize) -> Outcome<Vec<Record>> {
    let (mut got, began) = (Vec::new(), Instant::now());
    while got.len() < count {
        if began.elapsed() > PATIENCE {
            return Err(format!("{} of {count} records came", got.len()).into());
        }
        let Some(one) = consumer.poll(Duration::from_millis(100)) else { continue };
        let one = one?;
        let headers = one.headers().map_or(Vec::new(), |all| {
            all.iter().map(|one| Header { name: one.key.into(), value: one.value.map(Into::into) }).collect()
        });
        got.push(Record {
            topic: one.topic().into(),
            partition: one.partition(),
            offset: one.offset(),
            timestamp: one.timestamp().to_millis().unwrap_or(-1),
            key: one.key().map(Into::into),
            value: one.payload().map(Into::into),
            headers,
        });
    }
    Ok(got)
}

/// Sends the records to the topic, idempotently, and reads what is in the topic then.
pub fn round_trip(bootstrap: &str, topic: &str, codec: &str, records: &[Record]) -> Outcome<Vec<Record>> {
    let common = settings(bootstrap, None);
    let mut writing = common.clone();
    writing.set("enable.idempotence", "true").set("compression.codec", codec);
    let producer: BaseProducer = writing.create()?;
    for record in records {
        let mut headers = OwnedHeaders::new();
        for header in &record.headers {
            headers = headers.insert(Named { key: &header.name, value: header.value.as_ref() });
        }
        let mut made = BaseRecord::<[u8], [u8]>::to(topic)
            .partition(record.partition)
            .timestamp(record.timestamp)
            .headers(headers);
        made.key = record.key.as_deref();
        made.payload = record.value.as_deref();
        producer.send(made).map_err(|(error, _)| error)?;
    }
    producer.flush(PATIENCE)?;
    let consumer = reader(&common, "readers")?;
    let mut all = TopicPartitionList::new();
    for partition in 0..=1 {
        all.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    take(&consumer, records.len())
}

/// Copies "in" to "out" in a transaction, and returns the values of the copy.
pub fn copy(bootstrap: &str, security: Option<&Security>, count: usize) -> Outcome<Vec<Vec<u8>>> {
    let common = settings(bootstrap, security);
    let consumer = reader(&common, "copiers")?;
    consumer.subscribe(&["in"])?;
    let records = take(&consumer, count)?;
    let mut writing = common.clone();
    writing.set("transactional.id", "copier");
    let producer: BaseProducer = writing.create()?;
    let send = |value: &[u8]| {
        producer.send(BaseRecord::<[u8], [u8]>::to("out").payload(value)).map_err(|(error, _)| error)
    };
    producer.init_transactions(PATIENCE)?;
    producer.begin_transaction()?;
    send(b"aborted")?;
    producer.flush(PATIENCE)?;
    producer.abort_transaction(PATIENCE)?;
    producer.begin_transaction()?;
    for record in &records {
        send(record.value.as_deref().unwrap_or_default())?;
    }
    let group = consumer.group_metadata().ok_or("it is no member of a group")?;
    producer.send_offsets_to_transaction(&consumer.position()?, &group, PATIENCE)?;
    producer.commit_transaction(PATIENCE)?;
    let readers = reader(&common, "readers")?;
    readers.subscribe(&["out"])?;
    Ok(take(&readers, count)?.into_iter().filter_map(|one| one.value).collect())
}
