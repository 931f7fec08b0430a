//! One suite for both disks, and what the simulated one loses.

use std::{io, path::Path, sync::Arc};

use super::*;

/// What every disk does.
fn conforms(disk: &dyn Disk, root: &Path) {
    let dir = root.join("a").join("b");
    disk.create_dir(&dir).unwrap();
    disk.create_dir(&dir).unwrap();
    let path = dir.join("file");
    assert_eq!(disk.open(&path, OpenMode::Read).unwrap_err().kind(), io::ErrorKind::NotFound);
    let file = disk.create(&path, 10_000).unwrap();
    assert_eq!(disk.create(&path, 0).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(file.len().unwrap(), 10_000);
    let mut buf = vec![1; 600];
    file.read_exact_at(&mut buf, 9_000).unwrap();
    assert!(buf.iter().all(|b| *b == 0));
    file.write_at(b"hello", 9_998).unwrap();
    assert_eq!(file.len().unwrap(), 10_003);
    file.sync_data().unwrap();
    assert_eq!(file.read_at(&mut buf, 9_998).unwrap(), 5);
    assert_eq!(&buf[..5], b"hello");
    assert_eq!(file.read_exact_at(&mut buf, 9_998).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    file.set_len(9_999).unwrap();
    file.set_len(10_001).unwrap();
    assert_eq!(file.read_at(&mut buf, 9_998).unwrap(), 3);
    assert_eq!(&buf[..3], b"h\0\0");
    let reader = disk.open(&path, OpenMode::Read).unwrap();
    assert!(reader.write_at(b"x", 0).is_err());
    let block = [7; 4_096];
    assert!(reader.write_blocks_at(&[&block], 0).is_err());
    for (parts, offset) in [(&[&block[..4_095]][..], 0), (&[&block, &block[..1]], 0), (&[&block], 512)] {
        assert_eq!(file.write_blocks_at(parts, offset).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
    file.read_exact_at(&mut buf, 0).unwrap();
    assert!(buf.iter().all(|b| *b == 0));
    file.write_blocks_at(&[&block[..1], &block[..4_095]], 4_096).unwrap();
    file.write_blocks_at(&[], 0).unwrap();
    file.will_need(0, 10_001);
    file.read_exact_at(&mut buf, 4_095).unwrap();
    assert_eq!((buf[0], buf[1]), (0, 7));
    file.read_exact_at(&mut buf, 8_191 - 598).unwrap();
    assert_eq!((buf[598], buf[599]), (7, 0));
    let many: Vec<&[u8]> = std::iter::repeat_n(&b"ab"[..], 3_000).collect();
    file.write_parts_at(&many, 1).unwrap();
    file.write_parts_at(&[b"x", b"", b"yz"], 2).unwrap();
    file.write_parts_at(&[], 2).unwrap();
    file.read_exact_at(&mut buf, 0).unwrap();
    assert_eq!(&buf[..7], b"\0axyzab");
    let other = dir.join("other");
    write_durably(disk, &other, b"one").unwrap();
    write_durably(disk, &other, b"two").unwrap();
    assert_eq!(read_all(disk, &other, 3).unwrap(), Some(b"two".to_vec()));
    assert_eq!(read_all(disk, &other, 2).unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(read_all(disk, &dir.join("none"), 9).unwrap(), None);
    stretches_of_data(disk, &dir.join("sparse"));
    disk.rename(&other, &path).unwrap();
    let names: Vec<String> = disk.list(&dir).unwrap().into_iter().map(|i| i.name).collect();
    assert_eq!(names, ["file"]);
    // An open file outlives its name.
    assert_eq!(reader.read_at(&mut buf, 9_998).unwrap(), 3);
    disk.remove(&path).unwrap();
    assert_eq!(disk.remove(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    let lock = disk.lock(&dir.join("LOCK")).unwrap();
    assert_eq!(disk.lock(&dir.join("LOCK")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    disk.lock(&dir.join("LOCK")).unwrap();
    let space = disk.space(&dir).unwrap();
    assert!(space.free <= space.total && space.total > 0);
    assert!((0.0..=1.0).contains(&space.used_ratio()));
}

/// Whatever is not zero lies in a stretch of data, synced or not, however the rest came to be: reserved, cut off, or behind the end.
fn stretches_of_data(disk: &dyn Disk, path: &Path) {
    let file = disk.create(path, 4 << 20).unwrap();
    covered(&*file);
    for (at, len) in [(0, 1), (70_000, 3), (1 << 20, 8192), ((3 << 20) - 5, 10), ((4 << 20) - 1, 1)] {
        file.write_at(&vec![7; len], at).unwrap();
        covered(&*file);
    }
    file.sync_data().unwrap();
    covered(&*file);
    file.set_len((3 << 20) + 1).unwrap();
    file.set_len(5 << 20).unwrap();
    covered(&*file);
    file.write_at(&[9], (6 << 20) + 9).unwrap();
    file.sync_data().unwrap();
    covered(&*file);
    covered(&*disk.open(path, OpenMode::Read).unwrap());
    disk.remove(path).unwrap();
}

fn covered(file: &dyn File) {
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let mut at = 0;
    while let Some(data) = file.next_data(at as u64).unwrap() {
        let data = usize::try_from(data.start).unwrap()..usize::try_from(data.end).unwrap();
        assert!(data.start >= at && data.start < data.end && data.end <= bytes.len(), "{at} {data:?}");
        assert!(bytes[at..data.start].iter().all(|b| *b == 0), "{at} {data:?}");
        at = data.end;
    }
    assert!(bytes[at..].iter().all(|b| *b == 0), "{at}");
    assert_eq!(file.next_data(bytes.len() as u64).unwrap(), None);
}

/// What was only reserved is not data: the simulated disk tells it as the file systems do on which bookies run.
#[test]
fn the_simulated_disk_tells_what_was_written() {
    let disk = SimDisk::new(1, 1 << 30);
    disk.create_dir(Path::new("/d")).unwrap();
    let path = Path::new("/d/f");
    let file = disk.create(path, 1 << 20).unwrap();
    assert_eq!(file.next_data(0).unwrap(), None);
    file.write_at(&[1; 4096], 8192).unwrap();
    assert_eq!(file.next_data(0).unwrap(), Some(8192..12_288));
    assert_eq!(file.next_data(9_000).unwrap(), Some(9_000..12_288));
    assert_eq!(file.next_data(12_288).unwrap(), None);
    file.sync_data().unwrap();
    disk.punch(path, 8704..9216).unwrap();
    assert_eq!(file.next_data(0).unwrap(), Some(8192..8704));
    assert_eq!(file.next_data(8704).unwrap(), Some(9216..12_288));
}

#[test]
fn real_and_simulated_disk_conform() {
    let dir = tempfile::tempdir().unwrap();
    conforms(&RealDisk, dir.path());
    conforms(&SimDisk::new(1, 8 << 20), Path::new("/root"));
}

fn sim(seed: u64) -> (SimDisk, Arc<dyn File>) {
    let disk = SimDisk::new(seed, 1 << 20);
    disk.create_dir(Path::new("/d")).unwrap();
    let file = disk.create(Path::new("/d/f"), 0).unwrap();
    disk.sync_dir(Path::new("/d")).unwrap();
    (disk, file)
}

fn bytes(disk: &SimDisk) -> Vec<u8> {
    read_all(disk, Path::new("/d/f"), 1 << 20).unwrap().unwrap()
}

#[test]
fn a_crash_loses_what_was_not_synced_and_any_subset_of_it() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let (disk, file) = sim(seed);
        file.write_at(&[1; 2048], 0).unwrap();
        file.sync_data().unwrap();
        file.write_at(&[2; 2048], 0).unwrap();
        disk.crash(CrashPlan::Random);
        assert!(file.write_at(b"x", 0).is_err(), "a handle of before the crash");
        let after = bytes(&disk);
        assert_eq!(after.len(), 2048);
        seen.insert(after.chunks(512).map(|c| c[0]).collect::<Vec<_>>());
    }
    assert_eq!(seen.len(), 16, "every subset of four sectors");
    let (disk, file) = sim(1);
    file.write_at(&[2; 2048], 0).unwrap();
    disk.crash(CrashPlan::LoseAll);
    assert_eq!(bytes(&disk), b"");
}

#[test]
fn a_name_needs_the_sync_of_its_folder() {
    let disk = SimDisk::new(1, 1 << 20);
    disk.create_dir(Path::new("/d")).unwrap();
    let file = disk.create(Path::new("/d/f"), 0).unwrap();
    file.write_at(b"x", 0).unwrap();
    file.sync_data().unwrap();
    disk.crash(CrashPlan::LoseAll);
    assert_eq!(disk.list(Path::new("/d")).unwrap(), []);
}

#[test]
fn after_a_failed_sync_the_next_one_lies() {
    let (disk, file) = sim(1);
    file.write_at(b"data", 0).unwrap();
    disk.inject(Fault { kind: OpKind::Sync, after: 0, error: io::ErrorKind::Other });
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(bytes(&disk), b"data");
    disk.crash(CrashPlan::LoseAll);
    assert_eq!(bytes(&disk), b"\0\0\0\0", "the length got there, the bytes did not");
}

#[test]
fn a_durable_replacement_is_old_or_new_at_every_crash() {
    let path = Path::new("/d/f");
    for plan in [CrashPlan::LoseAll, CrashPlan::Random, CrashPlan::Torn, CrashPlan::KeepAll] {
        for n in 0..8 {
            for seed in 0..8 {
                let (disk, _) = sim(seed);
                write_durably(&disk, path, b"old").unwrap();
                disk.lose_power_after(n);
                let done = write_durably(&disk, path, b"new bytes").is_ok();
                disk.crash(plan);
                let after = bytes(&disk);
                assert!(after == b"new bytes" || (after == b"old" && !done), "{n} {seed} {after:?}");
            }
        }
    }
}

#[test]
fn a_full_disk_refuses_and_a_flipped_bit_shows() {
    let (disk, file) = sim(1);
    let full = disk.create(Path::new("/d/g"), 2 << 20).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    file.write_at(b"a", 0).unwrap();
    file.sync_data().unwrap();
    disk.flip_bit(Path::new("/d/f"), 1).unwrap();
    disk.crash(CrashPlan::LoseAll);
    assert_eq!(bytes(&disk), b"c");
}
