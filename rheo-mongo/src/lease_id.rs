//! Lease ids: made of the token of a fetch, so that a state keeps one token for all that it claimed.

use std::fmt::Write;

use rheo_core::{LeaseId, Sequence};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The lease id of one event of a fetch: 128 bits of a one-way function of token and sequence, so that
/// who knows one lease id cannot tell another (LSE-1).
pub(crate) fn lease_id(token: Uuid, sequence: Sequence) -> LeaseId {
    let digest = Sha256::new()
        .chain_update(token.as_bytes())
        .chain_update(sequence.get().to_be_bytes())
        .finalize();
    let mut text = String::with_capacity(32);
    for byte in digest.iter().take(16) {
        match write!(text, "{byte:02x}") {
            Ok(()) => {}
            Err(_) => unreachable!("writing to a string cannot fail"),
        }
    }
    LeaseId::new(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_of_a_fetch_has_an_id_of_its_own() {
        let token = Uuid::from_u128(7);
        let id = |sequence| lease_id(token, Sequence::new(sequence).expect("in range"));
        assert_eq!(id(1), id(1));
        let (one, two) = (id(1), id(2));
        let differ = one.as_str().bytes().zip(two.as_str().bytes());
        assert!(differ.filter(|(a, b)| a != b).count() >= 8);
        assert_eq!(one.as_str().len(), 32);
    }
}
