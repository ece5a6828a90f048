//! Reading a line without trusting its length.

use std::io::{self, BufRead};

/// More than any request of a client of the demo; a longer line is read past and dropped.
const MAX_LINE_BYTES: usize = 1024 * 1024;

/// The next line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Without its end.
    Text(Vec<u8>),
    /// Longer than any line may be.
    TooLong,
    /// There are no more.
    End,
}

/// Reads the next line, keeping no more of it than a line may have.
pub(crate) fn read_line(input: &mut impl BufRead) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    let mut started = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() && !started {
            return Ok(Line::End);
        }
        started = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        too_long |= line.len() + part.len() > MAX_LINE_BYTES;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let (at_end, used) = (chunk.is_empty() || end.is_some(), part.len());
        input.consume(used + usize::from(end.is_some()));
        if at_end {
            return Ok(if too_long { Line::TooLong } else { Line::Text(line) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn lines_come_whole_whatever_the_buffer() {
        let mut input = BufReader::with_capacity(3, &b"first\n\nlast"[..]);
        for expected in ["first", "", "last"] {
            assert_eq!(read_line(&mut input).unwrap(), Line::Text(expected.into()));
        }
        assert_eq!(read_line(&mut input).unwrap(), Line::End);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let mut text = vec![b'x'; MAX_LINE_BYTES + 1];
        text.extend_from_slice(b"\nnext\n");
        let mut input = text.as_slice();
        assert_eq!(read_line(&mut input).unwrap(), Line::TooLong);
        assert_eq!(read_line(&mut input).unwrap(), Line::Text(b"next".into()));
    }
}
