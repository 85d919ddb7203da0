//! Problems with files of arrays.

use std::io;
use tenon_framework::{Code, DType, Shape, shape::ShapeError, tensor::TensorError};
use thiserror::Error;

/// Why a `.npy` file, or one in an archive, cannot be read or written. `file` is its name as it was given.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NpyError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {detail}")]
    Read {
        /// The file.
        file: String,
        /// What the system says it is.
        kind: io::ErrorKind,
        /// The system's message.
        detail: String,
    },
    /// The file cannot be written.
    #[error("{file}: cannot be written: {detail}")]
    Write {
        /// The file.
        file: String,
        /// The system's message.
        detail: String,
    },
    /// The start of the file is not that of a `.npy` file.
    #[error("{file}: expected a .npy file, found {detail}")]
    Header {
        /// The file.
        file: String,
        /// The problem.
        detail: String,
    },
    /// An element type that no tensor has.
    #[error(
        "{file}: expected numbers, bools, bytes or text, found elements of type {found}: convert them with \
         NumPy's astype"
    )]
    ElementType {
        /// The file.
        file: String,
        /// NumPy's name of the type.
        found: String,
    },
    /// Another element type than was asked for.
    #[error("{file}: expected elements of type {expected}, found {found}")]
    Type {
        /// The file.
        file: String,
        /// Asked for.
        expected: DType,
        /// There is.
        found: DType,
    },
    /// A shape that no tensor has.
    #[error("{file}: {source}")]
    Shape {
        /// The file.
        file: String,
        /// Its problem.
        source: ShapeError,
    },
    /// The file is shorter or longer than its header says.
    #[error(
        "{file}: {shape} elements of {item} bytes need {expected} bytes after the header, found {found}"
    )]
    Length {
        /// The file.
        file: String,
        /// Shape in the header.
        shape: Box<Shape>,
        /// Size of an element.
        item: usize,
        /// Bytes that the header promises.
        expected: u64,
        /// Bytes that there are.
        found: usize,
    },
    /// Strings of no bytes: a file of any size could promise any number of them.
    #[error(
        "{file}: expected strings of at least one byte, found {shape} of {found}: convert them with NumPy's astype('S1')"
    )]
    NoWidth {
        /// The file.
        file: String,
        /// Shape in the header.
        shape: Box<Shape>,
        /// NumPy's name of the type.
        found: String,
    },
    /// A file that is not an archive, or a damaged one.
    #[error("{file}: expected a .npz archive, found {detail}")]
    Archive {
        /// The file.
        file: String,
        /// The problem.
        detail: String,
    },
    /// An archive that is much larger than its file.
    #[error(
        "{file}: its arrays have {bytes} bytes, while a file of its size may have {most}: split it, or save it with \
         numpy.savez, which does not compress"
    )]
    Expands {
        /// The file.
        file: String,
        /// What the archive says that its arrays have.
        bytes: u128,
        /// What they may have.
        most: u64,
    },
    /// An array that an archive has not.
    #[error("{file}: expected an array '{array}', found none of this name")]
    NoArray {
        /// The file.
        file: String,
        /// Name of the array.
        array: String,
    },
    /// No memory for what a file holds.
    #[error("{file}: no memory for its {bytes} bytes as a tensor")]
    NoMemory {
        /// The file.
        file: String,
        /// Bytes of the elements in the file.
        bytes: usize,
    },
    /// A number in a text that is not a character.
    #[error("{file}: element {index} holds {value:#x}, which is not a Unicode character")]
    Character {
        /// The file.
        file: String,
        /// Position of the element.
        index: usize,
        /// What was found.
        value: u32,
    },
    /// A string that ends in a zero byte: the file cannot tell it from padding.
    #[error("{file}: string {index} ends in a zero byte, which .npy files cannot keep")]
    TrailingZero {
        /// The file.
        file: String,
        /// Position of the element.
        index: usize,
    },
    /// The tensor refuses its contents, or its elements cannot be written.
    #[error("{file}: {source}")]
    Tensor {
        /// The file.
        file: String,
        /// Why.
        source: TensorError,
    },
}

impl NpyError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            NpyError::Read { kind: io::ErrorKind::NotFound, .. } | NpyError::NoArray { .. } => {
                Code::NOT_FOUND
            }
            NpyError::Read { kind: io::ErrorKind::OutOfMemory, .. }
            | NpyError::Expands { .. }
            | NpyError::NoMemory { .. } => Code::RESOURCE_EXHAUSTED,
            NpyError::Read { kind: io::ErrorKind::PermissionDenied, .. } => Code::PERMISSION_DENIED,
            NpyError::Read { .. } | NpyError::Write { .. } => Code::UNAVAILABLE,
            NpyError::Tensor { source, .. } => source.code(),
            _ => Code::INVALID_ARGUMENT,
        }
    }
}
