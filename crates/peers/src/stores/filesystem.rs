//! What kind of file system a folder is on.

use std::path::Path;

/// The kind, as the kernel names it: `ext4`, `tmpfs`. `unknown` where it does not say.
pub fn kind(folder: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    kind_in(&mounts, &folder).unwrap_or("unknown").to_owned()
}

/// The kind of the mount that is nearest above a folder, of those in the kernel's list.
fn kind_in<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    let above = mounts.lines().filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let point = Path::new(mount.split(' ').nth(4)?);
        folder.starts_with(point).then_some((point.components().count(), file_system))
    });
    // Of those on one point the last one hides the others.
    above.max_by_key(|(depth, _)| *depth)?.1.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_is_taken() {
        let mounts = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                      30 22 0:25 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n\
                      31 22 0:26 / /data rw shared:3 - xfs /dev/vdb rw\n\
                      32 22 0:27 / /data rw shared:4 - btrfs /dev/vdc rw\n";
        let kind = |folder: &str| kind_in(mounts, Path::new(folder));
        assert_eq!(kind("/tmp/x"), Some("ext4"));
        assert_eq!(kind("/dev/shm/x"), Some("tmpfs"));
        assert_eq!(kind("/data/x"), Some("btrfs"));
        assert_eq!(kind("/database"), Some("ext4"));
        assert_eq!(kind_in("", Path::new("/tmp")), None);
    }
}
