//! gRPC stubs and conversions.
