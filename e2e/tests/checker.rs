//! The checker of the other tests finds what it is there to find.

use tidemill_e2e::{Sent, check};

fn sent(acked: &[(u64, i64)], unknown: &[u64]) -> Vec<Sent> {
    vec![Sent {
        acked: acked.iter().map(|(n, o)| (*n, Some(*o))).collect(),
        unknown: unknown.to_vec(),
        ..Sent::default()
    }]
}

fn read(numbers: &[u64]) -> Vec<Vec<(i64, Vec<u8>)>> {
    vec![numbers.iter().enumerate().map(|(i, n)| (i as i64, n.to_string().into_bytes())).collect()]
}

#[test]
fn planted_faults_are_found() {
    check(&sent(&[(0, 0), (1, 1)], &[2]), &read(&[0, 1, 2])).unwrap();
    check(&sent(&[(0, 0), (1, 1)], &[2]), &read(&[0, 1])).unwrap();
    assert!(check(&sent(&[(0, 0), (1, 1)], &[]), &read(&[0])).is_err(), "lost");
    assert!(check(&sent(&[(0, 0)], &[1]), &read(&[0, 1, 1])).is_err(), "doubled");
    assert!(check(&sent(&[(0, 0), (1, 1)], &[]), &read(&[1, 0])).is_err(), "reordered");
    assert!(check(&sent(&[(0, 0)], &[]), &read(&[0, 7])).is_err(), "phantom");
}
