//! Connections: one channel per broker address, made at first use, reconnected by itself.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tidemill_runtime::{defaults, net};
use tidemill_types::ErrorCode;
use tonic::transport::{Channel, Endpoint};

use crate::{ClientConfig, ClientError};

/// Most addresses that are kept; a cluster with more brokers is refused rather than an unbounded map.
const MAX_ADDRESSES: usize = 10_000;

/// Channels by address.
#[derive(Debug)]
pub(crate) struct Pool {
    config: ClientConfig,
    channels: Mutex<HashMap<Arc<str>, Channel>>,
}

impl Pool {
    pub(crate) fn new(config: ClientConfig) -> Self {
        Self { config, channels: Mutex::new(HashMap::new()) }
    }

    /// The channel of an address; does not wait for a connection.
    pub(crate) fn channel(&self, address: &str) -> Result<Channel, ClientError> {
        let mut channels = self.channels.lock();
        if let Some(c) = channels.get(address) {
            return Ok(c.clone());
        }
        if channels.len() >= MAX_ADDRESSES {
            return Err(ClientError::new(
                ErrorCode::Overloaded,
                format!("connect {address}: more than {MAX_ADDRESSES} addresses"),
            ));
        }
        let channel = net::lazy(&endpoint(address, &self.config)?);
        channels.insert(Arc::from(address), channel.clone());
        Ok(channel)
    }
}

fn endpoint(address: &str, config: &ClientConfig) -> Result<Endpoint, ClientError> {
    let url = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let refuse = |why: String| {
        ClientError::new(ErrorCode::InvalidArgument, format!("server address {address:?}: {why}"))
    };
    let endpoint = Endpoint::from_shared(url).map_err(|e| refuse(e.to_string()))?;
    if endpoint.uri().scheme_str() != Some("http") {
        return Err(refuse("only http:// is offered".to_owned()));
    }
    if endpoint.uri().port().is_none() {
        return Err(refuse("a port is needed, as in http://127.0.0.1:7450".to_owned()));
    }
    Ok(endpoint
        .connect_timeout(config.connect_timeout)
        .tcp_nodelay(true)
        .initial_stream_window_size(defaults::STREAM_WINDOW)
        .initial_connection_window_size(defaults::CONNECTION_WINDOW)
        .max_frame_size(defaults::FRAME_BYTES)
        .http2_keep_alive_interval(defaults::KEEP_ALIVE)
        .keep_alive_timeout(defaults::KEEP_ALIVE)
        .keep_alive_while_idle(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_are_checked_and_channels_shared() {
        let pool = Pool::new(ClientConfig::default());
        for bad in ["", "https://h:1", "http://h", "h", "a b:1"] {
            let e = pool.channel(bad).expect_err(bad);
            assert_eq!(e.code, Some(ErrorCode::InvalidArgument), "{bad}");
        }
        for good in ["127.0.0.1:7450", "http://h:1", "127.0.0.1:7450"] {
            assert!(pool.channel(good).is_ok(), "{good}");
        }
        assert_eq!(pool.channels.lock().len(), 2);
    }
}
