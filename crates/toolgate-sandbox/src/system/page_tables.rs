//! Keeps a fork cheap.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
};

/// A smaller mapping has few pages.
const LARGE_BYTES: u64 = 1 << 17;

/// Changes one page of each large mapping of a file, so that a fork copies the page table of the
/// mapping. Otherwise a worker looks up each page of the program that it uses again, which takes
/// longer than most scripts. Where the system does not allow it, workers are slower.
pub(crate) fn copy_with_forks() -> io::Result<()> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let memory = File::options().read(true).write(true).open("/proc/self/mem")?;
    for line in maps.lines() {
        let Some(first) = large_and_read_only(line) else { continue };
        let mut byte = [0];
        memory.read_exact_at(&mut byte, first)?;
        memory.write_all_at(&byte, first)?;
    }
    Ok(())
}

/// The first address of a large mapping of a file that is only read.
fn large_and_read_only(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    let (first, last) = words.next()?.split_once('-')?;
    let is_read = matches!(words.next()?, "r--p" | "r-xp");
    let is_file = words.nth(3)?.starts_with('/');
    let (first, last) = (u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(last, 16).ok()?);
    (is_read && is_file && last.checked_sub(first)? >= LARGE_BYTES).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_program_is_such_a_mapping() {
        let text = "55d8c0a00000-55d8c2a00000 r-xp 00a00000 fe:00 1234   /usr/bin/toolgate";
        assert_eq!(large_and_read_only(text), Some(0x55d8_c0a0_0000));
        for other in [
            "55d8c0a00000-55d8c0a01000 r-xp 00a00000 fe:00 1234   /usr/bin/toolgate",
            "55d8c0a00000-55d8c2a00000 rw-p 00a00000 fe:00 1234   /usr/bin/toolgate",
            "7ffd0a9e4000-7ffd2a9e6000 r-xp 00000000 00:00 0      [vdso]",
            "7ffd0a9e4000-7ffd2a9e6000 r--p 00000000 00:00 0",
            "nonsense",
        ] {
            assert_eq!(large_and_read_only(other), None, "{other}");
        }
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        assert!(maps.lines().any(|line| large_and_read_only(line).is_some()));
        copy_with_forks().unwrap();
    }
}
