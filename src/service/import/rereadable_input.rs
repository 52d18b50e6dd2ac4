//! Input of an import, whose lines can be read several times, with bounded memory.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::FileExt,
    path::Path,
};

use super::ImportError;

const MIB: u64 = 1024 * 1024;

/// The length limit of a line in bytes, so that a file without line ends cannot fill the memory.
pub const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// The size limit of an input that is copied, in bytes: a pipe or a device may never end.
const MAX_COPIED_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// The byte order mark, which some editors write at the start of UTF-8 files.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The whole input as a file that can be read again.
pub struct RereadableInput {
    file: File,
    bytes: u64,
}

impl RereadableInput {
    /// Opens a file in place; input that can be read only once (a pipe, a device) is copied first.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        if meta.is_file() { Ok(Self { file, bytes: meta.len() }) } else { Self::copy(file) }
    }

    /// Copies a reader to an unnamed temporary file.
    pub fn copy(reader: impl Read) -> io::Result<Self> {
        Self::copy_at_most(reader, MAX_COPIED_BYTES)
    }

    fn copy_at_most(reader: impl Read, most: u64) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(256 * 1024, reader);
        let mut file = tempfile::tempfile()?;
        let (mut bytes, mut line) = (0, 0);
        loop {
            let some = match reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                some => some?,
            };
            if some.is_empty() {
                return Ok(Self { file, bytes });
            }
            let length = some.len();
            bytes += length as u64;
            line = some.iter().rposition(|byte| *byte == b'\n').map_or(line + length, |at| length - at - 1);
            if line as u64 > MAX_LINE_BYTES {
                return Err(too_much(format!("a line is longer than {} MiB", MAX_LINE_BYTES / MIB)));
            }
            if bytes > most {
                return Err(too_much(format!("a pipe or device may bring {} MiB; a file may have any length", most / MIB)));
            }
            file.write_all(some)?;
            reader.consume(length);
        }
    }

    /// Makes an input from lines that this process has generated. They are stored in an unnamed temporary file.
    pub fn of_lines(lines: impl IntoIterator<Item = String>) -> io::Result<Self> {
        let mut file = io::BufWriter::new(tempfile::tempfile()?);
        let mut bytes = 0;
        for line in lines {
            file.write_all(line.as_bytes())?;
            file.write_all(b"\n")?;
            bytes += line.len() as u64 + 1;
        }
        Ok(Self { file: file.into_inner().map_err(io::IntoInnerError::into_error)?, bytes })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a reader of the lines. It begins with the first line, whatever was read before.
    pub fn lines(&self) -> Lines<'_> {
        let file = Positioned { file: &self.file, position: 0 };
        Lines { reader: BufReader::with_capacity(256 * 1024, file), buffer: Vec::new(), number: 0, read: 0, unfinished: false }
    }
}

fn too_much(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, reason)
}

/// A file with a separate read position, so that two readers can read it independently.
struct Positioned<'a> {
    file: &'a File,
    position: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

/// Reader of the lines of an input, from the first line to the last.
pub struct Lines<'a> {
    reader: BufReader<Positioned<'a>>,
    buffer: Vec<u8>,
    number: u64,
    read: u64,
    /// Whether the rest of a line that is too long is still to be skipped.
    unfinished: bool,
}

impl Lines<'_> {
    /// Returns the next line that is not blank: its number, and either its text or the fault of the line.
    pub fn next(&mut self) -> io::Result<Option<(u64, Result<&str, ImportError>)>> {
        if std::mem::take(&mut self.unfinished) {
            self.read += self.reader.skip_until(b'\n')? as u64;
        }
        loop {
            self.buffer.clear();
            let bytes = (&mut self.reader).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut self.buffer)?;
            if bytes == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.read += bytes as u64;
            if bytes as u64 > MAX_LINE_BYTES && !self.buffer.ends_with(b"\n") {
                self.unfinished = true;
                let long = ImportError::line(self.number, "", format!("is longer than {} MiB", MAX_LINE_BYTES / MIB));
                return Ok(Some((self.number, Err(long))));
            }
            if self.number == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let text = std::str::from_utf8(&self.buffer).map_err(|_| ImportError::line(self.number, "", "is not UTF-8"));
        Ok(Some((self.number, text.map(str::trim_ascii))))
    }

    /// Returns the number of bytes read so far.
    pub fn read(&self) -> u64 {
        self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number and the text of the next line, or the fault of the line as text.
    fn next(lines: &mut Lines<'_>) -> Option<Result<(u64, String), String>> {
        let (number, text) = lines.next().unwrap()?;
        Some(text.map(|text| (number, text.to_owned())).map_err(|failure| failure.to_string()))
    }

    #[test]
    fn blank_lines_are_skipped_but_counted_and_lines_can_be_read_again() {
        let spool = RereadableInput::copy("\u{feff}a\r\n\n  \nb".as_bytes()).unwrap();
        for _ in 0..2 {
            let mut lines = spool.lines();
            assert_eq!(next(&mut lines), Some(Ok((1, "a".to_owned()))));
            assert_eq!(next(&mut lines), Some(Ok((4, "b".to_owned()))));
            assert_eq!(next(&mut lines), None);
        }
    }

    #[test]
    fn one_leading_byte_order_mark_is_ignored() {
        for (text, first) in [
            ("\u{feff}", None),
            ("\u{feff}\r\n\n", None),
            ("\u{feff}\u{feff}\n", Some((1, "\u{feff}"))),
            ("\n\u{feff}", Some((2, "\u{feff}"))),
            ("\u{a0}\n", Some((1, "\u{a0}"))),
        ] {
            let spool = RereadableInput::copy(text.as_bytes()).unwrap();
            assert_eq!(next(&mut spool.lines()), first.map(|(number, text)| Ok((number, text.to_owned()))), "{text:?}");
        }
    }

    #[test]
    fn lines_at_fault_are_reported_by_their_number_and_the_next_ones_are_read() {
        let longest = "x".repeat(usize::try_from(MAX_LINE_BYTES).unwrap());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [b"ok\n\xff\nx", longest.as_bytes(), b"\nok\n", longest.as_bytes()].concat()).unwrap();
        let spool = RereadableInput::open(file.path()).unwrap();
        let mut lines = spool.lines();
        assert_eq!(next(&mut lines), Some(Ok((1, "ok".to_owned()))));
        assert_eq!(next(&mut lines), Some(Err("line 2: is not UTF-8".to_owned())));
        assert_eq!(next(&mut lines), Some(Err("line 3: is longer than 16 MiB".to_owned())));
        assert_eq!(next(&mut lines), Some(Ok((4, "ok".to_owned()))));
        // The last line may lack its line end.
        assert_eq!(next(&mut lines), Some(Ok((5, longest))));
        assert_eq!(lines.read(), spool.bytes());
    }

    #[test]
    fn endless_input_is_copied_up_to_a_limit() {
        let reason = |reader: &mut dyn Read| RereadableInput::copy_at_most(reader, 2 * MAX_LINE_BYTES).err().map(|error| error.to_string());
        assert_eq!(reason(&mut io::repeat(b'x')).as_deref(), Some("a line is longer than 16 MiB"));
        assert_eq!(reason(&mut io::repeat(b'\n')).as_deref(), Some("a pipe or device may bring 32 MiB; a file may have any length"));
        assert_eq!(reason(&mut io::repeat(b'\n').take(2 * MAX_LINE_BYTES)), None);
    }
}
