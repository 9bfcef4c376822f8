//! After a pause the log says that its last batch was stable: a byte that is bent there later is
//! damage, and not a batch that was never finished.

use std::path::Path;
use std::time::Duration;

use muesli_log::format::segment;
use muesli_log::{Directory, Log, LogError, Options, Replay, Sequence, open};

struct Ignored;

impl Replay for Ignored {
    fn piece(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn record(&mut self, _: Sequence, _: u8, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn reopened(path: &Path) -> Result<u64, LogError> {
    let disk = Directory::existing(path).unwrap();
    open(disk, Options::default(), &mut Ignored).map(|(_, opened)| opened.records)
}

/// The files as they are now, elsewhere: as if the power had failed here.
fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

#[test]
fn damage_to_the_last_batch_is_told_after_a_pause() {
    const PAYLOAD: &[u8] = b"the last that was acknowledged";
    let dir = tempfile::tempdir().unwrap();
    let disk = Directory::create(dir.path()).unwrap();
    let (writer, _) = open(disk, Options::default(), &mut Ignored).unwrap();
    let mut log = Log::start(writer, || {}).unwrap();
    log.append(1, |out| out.extend_from_slice(b"the first")).unwrap();
    log.sync().unwrap();
    log.append(1, |out| out.extend_from_slice(PAYLOAD)).unwrap();
    log.sync().unwrap();
    // The log is idle now; its mark comes soon.
    loop {
        let copied = copy(dir.path());
        assert_eq!(reopened(copied.path()).unwrap(), 2);
        let bent = copy(dir.path());
        let file = bent.path().join(segment::name(1));
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.windows(PAYLOAD.len()).position(|it| it == PAYLOAD).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        match reopened(bent.path()) {
            Err(LogError::Damaged { sequence, .. }) => {
                assert_eq!(sequence, Sequence(2));
                break;
            }
            Ok(records) => assert_eq!(records, 1, "before the mark the batch is cut"),
            Err(other) => panic!("{other}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // It goes on after the mark, in the same segment and after the next start.
    log.append(1, |out| out.extend_from_slice(b"more")).unwrap();
    log.sync().unwrap();
    log.close().unwrap();
    assert_eq!(reopened(dir.path()).unwrap(), 3);
    assert_eq!(reopened(dir.path()).unwrap(), 3);
}
