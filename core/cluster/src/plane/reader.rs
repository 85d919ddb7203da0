//! Frames that come in.

use super::frame::{FrameError, HEADER, Header};
use std::{io, mem::MaybeUninit, pin::Pin, task::Poll};
use tenon_framework::tensor::TensorFiller;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that are read ahead.
const AHEAD: usize = 64 << 10;

/// Why no further frame can be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The lane ended or broke.
    Lane(io::Error),
    /// What came is not a frame.
    Frame(FrameError),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Lane(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                write!(f, "the other side ended the link in the middle of a frame")
            }
            ReadError::Lane(error) => write!(f, "{error}"),
            ReadError::Frame(error) => write!(f, "{error}"),
        }
    }
}

impl From<FrameError> for ReadError {
    fn from(error: FrameError) -> ReadError {
        ReadError::Frame(error)
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Lane(error)
    }
}

/// The receiving side of a lane.
pub(super) struct Reader<R> {
    lane: R,
    checked: bool,
    ahead: Box<[u8]>,
    begin: usize,
    end: usize,
}

fn cut_off() -> ReadError {
    ReadError::Lane(io::ErrorKind::UnexpectedEof.into())
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub fn new(lane: R, checked: bool) -> Reader<R> {
        Reader { lane, checked, ahead: vec![0; AHEAD].into_boxed_slice(), begin: 0, end: 0 }
    }

    /// Reads into memory, of which it does not read the former content; the number of bytes.
    async fn read(lane: &mut R, into: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        std::future::poll_fn(|context| {
            let mut into = ReadBuf::uninit(into);
            match Pin::new(&mut *lane).poll_read(context, &mut into) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(result) => Poll::Ready(result.map(|()| into.filled().len())),
            }
        })
        .await
    }

    /// Reads ahead; whether there was something.
    async fn more(&mut self) -> io::Result<bool> {
        if self.begin > 0 {
            self.ahead.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        let bytes =
            tokio::io::AsyncReadExt::read(&mut self.lane, &mut self.ahead[self.end..]).await?;
        self.end += bytes;
        Ok(bytes > 0)
    }

    /// The next header; `None` where the lane ends.
    pub async fn header(&mut self) -> Result<Option<Header>, ReadError> {
        while self.end - self.begin < HEADER {
            if !self.more().await? {
                return if self.begin == self.end { Ok(None) } else { Err(cut_off()) };
            }
        }
        let bytes = std::array::from_fn(|i| self.ahead[self.begin + i]);
        self.begin += HEADER;
        Ok(Some(Header::read(&bytes, self.checked)?))
    }

    /// Takes up to `most` bytes of those that were read ahead.
    fn ahead(&mut self, most: usize) -> &[u8] {
        let begin = self.begin;
        self.begin += most.min(self.end - begin);
        &self.ahead[begin..self.begin]
    }

    /// Reads the body of a frame.
    pub async fn body(&mut self, header: &Header, into: &mut Vec<u8>) -> Result<(), ReadError> {
        into.clear();
        while into.len() < header.length {
            if self.begin == self.end && !self.more().await? {
                return Err(cut_off());
            }
            into.extend_from_slice(self.ahead(header.length - into.len()));
        }
        Ok(header.check(into)?)
    }

    /// Reads a body to its place in a tensor, which has room for it.
    pub async fn fill(
        &mut self,
        header: &Header,
        filler: &mut TensorFiller,
    ) -> Result<(), ReadError> {
        let before = filler.filled().len();
        let first = self.ahead(header.length);
        let mut left = header.length - first.len();
        let put = filler.put(first);
        put.map_err(|error| io::Error::other(error.to_string()))?;
        while left > 0 {
            let spare = filler.spare();
            let room = left.min(spare.len());
            let bytes = Self::read(&mut self.lane, &mut spare[..room]).await?;
            if bytes == 0 {
                return Err(cut_off());
            }
            // SAFETY: a buffer counts only those bytes as filled that were written, from its beginning on.
            unsafe { filler.advance(bytes) };
            left -= bytes;
        }
        Ok(header.check(&filler.filled()[before..])?)
    }
}
