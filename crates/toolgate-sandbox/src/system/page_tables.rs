//! Keeps a fork cheap.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    ptr,
};

/// A smaller mapping has few pages.
const LARGE_BYTES: usize = 1 << 17;

/// The large mappings of files of which this process has changed nothing: the code and the constants of the program
/// and of its libraries. Each is the first address and the number of bytes.
#[derive(Debug, Default)]
pub(crate) struct MappedFiles(Vec<(usize, usize)>);

impl MappedFiles {
    /// Those of this process. Where the system does not show them, workers are slower.
    pub(crate) fn of_this_process() -> io::Result<Self> {
        Ok(Self(unchanged_files(&fs::read_to_string("/proc/self/smaps")?)))
    }

    /// Changes one page of each, so that a fork copies the page table. Otherwise a worker looks up each page of the
    /// program that it uses again, which takes longer than most scripts.
    pub(crate) fn copy_with_forks(&self) -> io::Result<()> {
        let memory = File::options().read(true).write(true).open("/proc/self/mem")?;
        for &(first, _) in &self.0 {
            let mut byte = [0];
            let place = u64::try_from(first).map_err(io::Error::other)?;
            memory.read_exact_at(&mut byte, place)?;
            memory.write_all_at(&byte, place)?;
        }
        Ok(())
    }

    /// Empties the page tables. They fill again with the pages that are used from now on, so that a fork copies no
    /// others.
    #[expect(unsafe_code, reason = "the call could also discard what a program has written")]
    pub(crate) fn forget_pages(&self) {
        for &(first, bytes) in &self.0 {
            let start = ptr::with_exposed_provenance_mut(first);
            // SAFETY: the pages have the bytes of the file, and are read from it again. The one page that was
            // written has the same bytes. A failure leaves the pages as they are.
            let _ = unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) };
        }
    }
}

/// The mappings of a list such as `/proc/self/smaps` that are large, that can only be read, and that show the bytes of
/// a file.
fn unchanged_files(list: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut mapping = None;
    for line in list.lines() {
        match line.strip_prefix("Anonymous:") {
            Some(changed) => found.extend(mapping.take().filter(|_| changed.trim() == "0 kB")),
            None => mapping = large_and_read_only(line).or(mapping.filter(|_| !is_head(line))),
        }
    }
    found
}

/// Whether the line begins another mapping.
fn is_head(line: &str) -> bool {
    !line.split_whitespace().next().is_some_and(|word| word.ends_with(':'))
}

/// The range of a large mapping of a file that is only read.
fn large_and_read_only(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let (first, last) = words.next()?.split_once('-')?;
    let is_read = matches!(words.next()?, "r--p" | "r-xp");
    let is_file = words.nth(3)?.starts_with('/');
    let first = usize::from_str_radix(first, 16).ok()?;
    let bytes = usize::from_str_radix(last, 16).ok()?.checked_sub(first)?;
    (is_read && is_file && bytes >= LARGE_BYTES).then_some((first, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_program_is_such_a_mapping() {
        let text = "55d8c0a00000-55d8c2a00000 r-xp 00a00000 fe:00 1234   /usr/bin/toolgate";
        assert_eq!(large_and_read_only(text), Some((0x55d8_c0a0_0000, 0x200_0000)));
        for other in [
            "55d8c0a00000-55d8c0a01000 r-xp 00a00000 fe:00 1234   /usr/bin/toolgate",
            "55d8c0a00000-55d8c2a00000 rw-p 00a00000 fe:00 1234   /usr/bin/toolgate",
            "7ffd0a9e4000-7ffd2a9e6000 r-xp 00000000 00:00 0      [vdso]",
            "7ffd0a9e4000-7ffd2a9e6000 r--p 00000000 00:00 0",
            "nonsense",
        ] {
            assert_eq!(large_and_read_only(other), None, "{other}");
        }
    }

    #[test]
    fn what_the_process_has_changed_is_left_out() {
        let list = "55d8c0a00000-55d8c2a00000 r-xp 00a00000 fe:00 1234   /usr/bin/toolgate\n\
                    Rss:    8144 kB\n\
                    Anonymous:       0 kB\n\
                    55d8c2a00000-55d8c4a00000 r--p 02a00000 fe:00 1234   /usr/bin/toolgate\n\
                    Anonymous:    1016 kB\n\
                    55d8c4a00000-55d8c6a00000 r--p 04a00000 fe:00 1234   /usr/bin/toolgate\n\
                    55d8c6a00000-55d8c8a00000 rw-p 06a00000 fe:00 1234   /usr/bin/toolgate\n\
                    Anonymous:       0 kB\n";
        assert_eq!(unchanged_files(list), [(0x55d8_c0a0_0000, 0x200_0000)]);
    }

    #[test]
    fn a_program_goes_on_without_its_pages() {
        let files = MappedFiles::of_this_process().unwrap();
        assert!(!files.0.is_empty());
        files.copy_with_forks().unwrap();
        let changed = MappedFiles::of_this_process().unwrap().0;
        assert!(files.0.iter().all(|file| !changed.contains(file)), "one page of each is changed");
        files.forget_pages();
        assert_eq!(MappedFiles::of_this_process().unwrap().0, files.0, "the file's own pages");
    }
}
