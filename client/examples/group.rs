//! Writes a thousand records, reads them in a consumer group of two members, and shows that the group has nothing left to read.
//!
//! ```text
//! cargo run -p tidemill-client --example group -- 127.0.0.1:7450
//! ```

#![expect(clippy::print_stdout, reason = "an example tells what it sees")]

use std::{collections::BTreeSet, env, error::Error, time::Duration};

use tidemill_client::{
    Client, ClientConfig, ClientError, Event, GroupConsumer, GroupConsumerConfig, GroupEvent, ProducerConfig,
    SendRecord,
};

const TOPIC: &str = "example-rust";
const GROUP: &str = "example-rust";
const PARTITIONS: u32 = 4;
const RECORDS: usize = 1_000;
/// All of it takes a second; a cluster that does not answer ends the example with an error.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7450".to_owned());
    let client = Client::connect(ClientConfig::new([server])).await?;
    client.admin().create_topic(TOPIC, PARTITIONS, [], true).await?;
    tokio::time::timeout(LIMIT, run(&client)).await?
}

async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    let ours = write(client).await?;
    println!("{RECORDS} records written, each synced on two of three copies");

    let config = || GroupConsumerConfig::new(GROUP, [TOPIC]);
    let mut members = [client.group_consumer(config()).await?, client.group_consumer(config()).await?];
    let mut seen = BTreeSet::new();
    while !ours.is_subset(&seen) {
        for member in &mut members {
            seen.extend(values(member.poll(Duration::from_millis(100)).await?)?);
        }
    }
    println!("{RECORDS} of them read by two members of group {GROUP}");
    for member in members {
        // What the polls gave counts as processed: it is committed.
        member.close().await?;
    }

    let mut third = client.group_consumer(config()).await?;
    while !is_at_the_end(&third).await? {
        let again = values(third.poll(Duration::from_millis(100)).await?)?;
        if let Some(value) = again.intersection(&ours).next() {
            return Err(format!("{value} is read again though it was committed").into());
        }
    }
    third.close().await?;
    println!("0 left for a third one");
    Ok(())
}

/// Writes values that no run before has written; returns when all are acknowledged.
async fn write(client: &Client) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let run = uuid::Uuid::new_v4();
    let producer = client.producer(ProducerConfig::default()).await?;
    let topic = producer.topic(TOPIC).await?;
    let mut deliveries = Vec::new();
    let mut values = BTreeSet::new();
    for n in 0..RECORDS {
        let (key, value) = (format!("key-{}", n % 100), format!("{run} {n}"));
        let record = SendRecord::new(Some(key.as_bytes()), Some(value.as_bytes()));
        deliveries.push(producer.send(&topic, record).await?);
        values.insert(value);
    }
    for delivery in deliveries {
        delivery.await?;
    }
    producer.close().await;
    Ok(values)
}

/// The values of what a poll gave. A service would do its work here.
fn values(events: Vec<GroupEvent>) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut values = BTreeSet::new();
    for event in events {
        match event {
            GroupEvent::Read(Event::Batch(batch)) => {
                for record in batch.records {
                    let value = record.value.ok_or("a record without a value")?;
                    values.insert(String::from_utf8(value.into())?);
                }
            }
            GroupEvent::Read(other) => println!("{other:?}"),
            // With commits by time the consumer does what these ask for by itself.
            GroupEvent::Assigned(_) | GroupEvent::Revoking(_) | GroupEvent::Lost(_) => {}
        }
    }
    Ok(values)
}

/// Whether this member has every partition and has read all that is there.
async fn is_at_the_end(member: &GroupConsumer) -> Result<bool, ClientError> {
    if member.assignment().len() < PARTITIONS as usize {
        return Ok(false);
    }
    let ends = member.end_offsets().await?;
    Ok(ends.len() == PARTITIONS as usize
        && ends.iter().all(|end| member.position(&end.topic, end.partition) == end.offset))
}
