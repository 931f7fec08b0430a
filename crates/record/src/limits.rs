//! What a batch may be at most.

/// Upper bounds for one batch. A topic's configuration gives them; the default is the product's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole batch as it lies on the wire, header included.
    pub batch: usize,
    /// Bytes of a batch's records after decompression. Also bounds the records of a batch that is being built.
    pub inflated: usize,
    /// Headers of one record.
    pub headers: usize,
}

impl Limits {
    /// 1 MiB a batch, 64 MiB inflated, 1 000 headers a record.
    pub const DEFAULT: Self = Self { batch: 1 << 20, inflated: 64 << 20, headers: 1_000 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
