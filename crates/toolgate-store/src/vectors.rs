//! The vectors of encoders, by encoder and content.
//!
//! One append-only file for each encoder: a header, then records of equal size. Each record has the
//! hash of its text, the numbers with 16 bits each, and a checksum. A killed writer may leave part
//! of a record at the end, which the next writer removes. A file lock serialises the writers and
//! readers of all processes.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use half::f16;

use crate::{StoreError, files};

/// The largest file of one encoder; past it, the older half of it is forgotten.
pub const MAX_VECTOR_BYTES: u64 = 512 * 1024 * 1024;
/// How many encoders are remembered; the ones not written to for longest are forgotten.
pub const MAX_ENCODERS: usize = 8;

/// The vectors of one encoder.
#[derive(Debug)]
pub struct VectorCache {
    path: PathBuf,
    most: u64,
    known: Mutex<CachedVectors>,
}

/// The known content of the file.
#[derive(Debug, Default)]
struct CachedVectors {
    head: VectorFileHeader,
    /// The offset of the record of each text.
    offsets: HashMap<Key, u64>,
    /// How far the file was read.
    end: u64,
}

/// The header of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct VectorFileHeader {
    dimensions: u32,
    /// Counts how often records were moved: offsets of another generation are of no use.
    generation: u32,
}

/// The hash of a text.
type Key = [u8; KEY_BYTES];

const MAGIC: &[u8; 8] = b"TGVECT01";
const HEAD_BYTES: u64 = 16;
const KEY_BYTES: usize = 16;
const CHECK_BYTES: usize = 4;
const MAX_DIMENSIONS: u32 = 8_192;

impl VectorCache {
    pub(crate) fn new(folder: &Path, encoder: &str) -> Self {
        let path = folder.join(format!("{}.vectors", files::slug(encoder)));
        Self { path, most: MAX_VECTOR_BYTES, known: Mutex::default() }
    }

    /// The stored vectors of texts. Damaged ones count as missing.
    pub fn get(&self, texts: &[&str]) -> Vec<Option<Vec<f32>>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.look_up(&mut known, texts).unwrap_or_else(|_| vec![None; texts.len()])
    }

    /// Stores vectors of one length. Vectors of another length are removed, because the encoder has
    /// changed.
    pub fn put(&self, entries: &[(&str, &[f32])]) -> Result<(), StoreError> {
        let Some((_, first)) = entries.first() else { return Ok(()) };
        let dimensions = u32::try_from(first.len()).unwrap_or(u32::MAX);
        let fits = |vector: &[f32]| vector.len() == first.len();
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) || !entries.iter().all(|(_, v)| fits(v)) {
            let error = io::Error::other("vectors of several lengths");
            return Err(StoreError::new(&self.path, error));
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.append(&mut known, dimensions, entries);
        written.map_err(|error| StoreError::new(&self.path, error))
    }

    fn look_up(
        &self,
        known: &mut CachedVectors,
        texts: &[&str],
    ) -> io::Result<Vec<Option<Vec<f32>>>> {
        let mut file = File::open(&self.path)?;
        file.lock_shared()?;
        known.refresh(&mut file)?;
        let mut vectors = Vec::with_capacity(texts.len());
        let mut record = vec![0; record_bytes(known.head.dimensions)];
        for text in texts {
            let key = key(text);
            let Some(offset) = known.offsets.get(&key) else {
                vectors.push(None);
                continue;
            };
            file.seek(SeekFrom::Start(*offset))?;
            file.read_exact(&mut record)?;
            let vector = decoded(&record, &key);
            if vector.is_none() {
                known.offsets.remove(&key);
            }
            vectors.push(vector);
        }
        Ok(vectors)
    }

    fn append(
        &self,
        known: &mut CachedVectors,
        dimensions: u32,
        entries: &[(&str, &[f32])],
    ) -> io::Result<()> {
        let is_new = !self.path.exists();
        if is_new && let Some(folder) = self.path.parent() {
            files::make_folder(folder).map_err(io::Error::other)?;
            forget_oldest(folder);
        }
        let mut file = files::private_options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)?;
        file.lock()?;
        known.refresh(&mut file)?;
        if known.head.dimensions != dimensions {
            known.begin(&mut file, dimensions)?;
        }
        let size = record_bytes(dimensions);
        let mut bytes = Vec::with_capacity(entries.len() * size);
        for (text, vector) in entries {
            let key = key(text);
            if !known.offsets.contains_key(&key) {
                encode(&key, vector, &mut bytes);
            }
        }
        if known.end + bytes.len() as u64 > self.most {
            known.halve(&mut file)?;
        }
        // Removes an unfinished record.
        file.set_len(known.end)?;
        file.seek(SeekFrom::Start(known.end))?;
        file.write_all(&bytes)?;
        known.refresh(&mut file)
    }
}

impl CachedVectors {
    /// Reads the new records, or everything if the file was replaced.
    fn refresh(&mut self, file: &mut File) -> io::Result<()> {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(0))?;
        let Some(head) = VectorFileHeader::read(file)? else {
            *self = Self::default();
            return Ok(());
        };
        if head != self.head || length < self.end {
            *self = Self { head, offsets: HashMap::new(), end: HEAD_BYTES };
        }
        let size = record_bytes(head.dimensions) as u64;
        file.seek(SeekFrom::Start(self.end))?;
        let mut reader = BufReader::with_capacity(256 * 1024, file);
        while self.end + size <= length {
            let mut key = Key::default();
            reader.read_exact(&mut key)?;
            reader.seek_relative((size - KEY_BYTES as u64).cast_signed())?;
            self.offsets.insert(key, self.end);
            self.end += size;
        }
        Ok(())
    }

    /// Makes an empty file of it.
    fn begin(&mut self, file: &mut File, dimensions: u32) -> io::Result<()> {
        let generation = self.head.generation.wrapping_add(1);
        let head = VectorFileHeader { dimensions, generation };
        file.set_len(0)?;
        head.write(file)?;
        *self = Self { head, offsets: HashMap::new(), end: HEAD_BYTES };
        Ok(())
    }

    /// Forgets the older half.
    fn halve(&mut self, file: &mut File) -> io::Result<()> {
        let size = record_bytes(self.head.dimensions) as u64;
        let count = (self.end - HEAD_BYTES) / size;
        let mut kept = Vec::new();
        file.seek(SeekFrom::Start(HEAD_BYTES + count.div_ceil(2) * size))?;
        (&mut *file).take(count / 2 * size).read_to_end(&mut kept)?;
        self.begin(file, self.head.dimensions)?;
        file.write_all(&kept)?;
        self.refresh(file)
    }
}

impl VectorFileHeader {
    /// `None` if the file is empty or not a vector file.
    fn read(file: &mut File) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        file.take(HEAD_BYTES).read_to_end(&mut bytes)?;
        let Some((magic, rest)) = bytes.split_first_chunk::<8>() else { return Ok(None) };
        let ([dimensions, generation], []) = rest.as_chunks::<4>() else { return Ok(None) };
        let head = Self {
            dimensions: u32::from_le_bytes(*dimensions),
            generation: u32::from_le_bytes(*generation),
        };
        let is_sound = magic == MAGIC && (1..=MAX_DIMENSIONS).contains(&head.dimensions);
        Ok(is_sound.then_some(head))
    }

    fn write(self, file: &mut File) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.dimensions.to_le_bytes());
        bytes.extend(self.generation.to_le_bytes());
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&bytes)
    }
}

fn record_bytes(dimensions: u32) -> usize {
    KEY_BYTES + 2 * dimensions as usize + CHECK_BYTES
}

fn key(text: &str) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..KEY_BYTES]);
    key
}

fn encode(key: &Key, vector: &[f32], into: &mut Vec<u8>) {
    let start = into.len();
    into.extend(key);
    into.extend(vector.iter().flat_map(|number| f16::from_f32(*number).to_le_bytes()));
    let check = blake3::hash(&into[start..]);
    into.extend(&check.as_bytes()[..CHECK_BYTES]);
}

fn decoded(record: &[u8], key: &Key) -> Option<Vec<f32>> {
    let (content, check) = record.split_at_checked(record.len().checked_sub(CHECK_BYTES)?)?;
    let (held, numbers) = content.split_first_chunk::<KEY_BYTES>()?;
    let is_sound = held == key && blake3::hash(content).as_bytes()[..CHECK_BYTES] == *check;
    let numbers = numbers.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32());
    is_sound.then(|| numbers.collect())
}

/// Removes the vectors of the oldest encoders. A failure does no harm.
fn forget_oldest(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut held: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "vectors"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    held.sort();
    let surplus = (held.len() + 1).saturating_sub(MAX_ENCODERS);
    for (_, path) in held.into_iter().take(surplus) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests;
