//! Sends records through a Kafka with one of two Rust clients, reads them back, and prints what it read.
//!
//!     clients round-trip rdkafka|rskafka BOOTSTRAP RECORDS CODEC...
//!     clients copy rdkafka BOOTSTRAP SECURITY COUNT
//!
//! RECORDS is a file: one JSON object per line, as `Record` has it. They go to a topic for each codec, "CLIENT-CODEC".
//! SECURITY is null, or a JSON object as `Security` has it. `copy` reads COUNT records of "in" as a member of the group
//! "copiers", sends one record to "out" in a transaction that it aborts, then all of them with the group's offsets in one
//! that it commits, and prints the values that a reader of committed records finds in "out", one per line.

mod librdkafka;
mod pure;

use std::error::Error;

use serde::{Deserialize, Serialize};

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// One record, as it is given and as it is printed. Bytes are base64, or null.
#[derive(Clone, Deserialize, Serialize)]
pub struct Record {
    #[serde(default)]
    pub topic: String,
    pub partition: i32,
    #[serde(default)]
    pub offset: i64,
    pub timestamp: i64,
    #[serde(with = "base64")]
    pub key: Option<Vec<u8>>,
    #[serde(with = "base64")]
    pub value: Option<Vec<u8>>,
    pub headers: Vec<Header>,
}

/// One header of a record.
#[derive(Clone, Deserialize, Serialize)]
pub struct Header {
    pub name: String,
    #[serde(with = "base64")]
    pub value: Option<Vec<u8>>,
}

/// How a client has to come to the brokers, with TLS and SASL.
#[derive(Deserialize)]
pub struct Security {
    pub ca: String,
    pub mechanism: String,
    pub user: String,
    pub password: String,
}

mod base64 {
    use data_encoding::BASE64;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer>(data: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        data.as_ref().map(|data| BASE64.encode(data)).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        text.map(|text| BASE64.decode(text.as_bytes()).map_err(D::Error::custom)).transpose()
    }
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, client, bootstrap, third, more @ ..] = arguments.as_slice() else {
        return Err("too few arguments".into());
    };
    if what == "copy" {
        let security = serde_json::from_str::<Option<Security>>(third)?;
        for value in librdkafka::copy(bootstrap, security.as_ref(), more[0].parse()?)? {
            println!("{}", String::from_utf8(value)?);
        }
        return Ok(());
    }
    let mut records = Vec::new();
    for line in std::fs::read_to_string(third)?.lines() {
        records.push(serde_json::from_str::<Record>(line)?);
    }
    for codec in more {
        let topic = format!("{client}-{codec}");
        let mut got = match client.as_str() {
            "rdkafka" => librdkafka::round_trip(bootstrap, &topic, codec, &records)?,
            _ => pure::round_trip(bootstrap, &topic, codec, &records).await?,
        };
        got.sort_by_key(|one| (one.partition, one.offset));
        for one in got {
            println!("{}", serde_json::to_string(&one)?);
        }
    }
    Ok(())
}
