//! The crate `rskafka`, which has all of Kafka's protocol that it speaks in Rust. It knows no groups and no transactions.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::record::Record as Made;

use crate::{Header, Outcome, Record};

/// Sends the records to the topic, and reads what is in the topic then.
pub async fn round_trip(bootstrap: &str, topic: &str, codec: &str, records: &[Record]) -> Outcome<Vec<Record>> {
    let compression = match codec {
        "gzip" => Compression::Gzip,
        "lz4" => Compression::Lz4,
        "snappy" => Compression::Snappy,
        "zstd" => Compression::Zstd,
        _ => Compression::NoCompression,
    };
    let client = ClientBuilder::new(bootstrap.split(',').map(String::from).collect()).build().await?;
    let mut got = Vec::new();
    for index in 0..=1 {
        let partition = client.partition_client(topic, index, UnknownTopicHandling::Error).await?;
        let mine: Vec<Made> = records.iter().filter(|one| one.partition == index).map(made).collect();
        let count = mine.len();
        partition.produce(mine, compression).await?;
        let mut next = 0;
        while next < count as i64 {
            for one in partition.fetch_records(next, 1..1 << 20, 1_000).await?.0 {
                next = one.offset + 1;
                got.push(read(topic, index, one.offset, one.record));
            }
        }
    }
    Ok(got)
}

fn made(record: &Record) -> Made {
    let headers: BTreeMap<_, _> =
        record.headers.iter().map(|one| (one.name.clone(), one.value.clone().unwrap_or_default())).collect();
    let timestamp = DateTime::<Utc>::from_timestamp_millis(record.timestamp).unwrap_or_default();
    Made { key: record.key.clone(), value: record.value.clone(), headers, timestamp }
}

fn read(topic: &str, partition: i32, offset: i64, one: Made) -> Record {
    let headers = one.headers.into_iter().map(|(name, value)| Header { name, value: Some(value) }).collect();
    let timestamp = one.timestamp.timestamp_millis();
    Record { topic: topic.into(), partition, offset, timestamp, key: one.key, value: one.value, headers }
}
