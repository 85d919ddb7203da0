//! One call that is made of a kernel.

use tenon_framework::{DType, Tensor, attr::AttrMap};

/// The purpose of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tag {
    /// Has an input without elements.
    Empty,
    /// Has scalars only.
    Scalar,
    /// Has one element each, of rank one or more.
    One,
    /// Sizes that no vector width divides.
    Prime,
    /// More elements than fit in a level-one cache, and enough for several threads.
    Large,
    /// Inputs of different shapes.
    Broadcast,
    /// NaN, infinities, signed zeros, denormals; the extremes of integers.
    Special,
    /// From the op's own `cases`.
    Declared,
    /// From golden data.
    Golden,
    /// Has indices that are out of range.
    Beyond,
    /// Has an integer attribute that is far from its default.
    Attribute,
}

impl Tag {
    /// All, in order.
    pub const ALL: [Tag; 11] = [
        Tag::Empty,
        Tag::Scalar,
        Tag::One,
        Tag::Prime,
        Tag::Large,
        Tag::Broadcast,
        Tag::Special,
        Tag::Declared,
        Tag::Golden,
        Tag::Beyond,
        Tag::Attribute,
    ];

    /// Its name in reproducers.
    pub fn name(self) -> &'static str {
        match self {
            Tag::Empty => "empty",
            Tag::Scalar => "scalar",
            Tag::One => "one",
            Tag::Prime => "prime",
            Tag::Large => "large",
            Tag::Broadcast => "broadcast",
            Tag::Special => "special",
            Tag::Declared => "declared",
            Tag::Golden => "golden",
            Tag::Beyond => "beyond",
            Tag::Attribute => "attribute",
        }
    }

    /// The tag of a name.
    pub fn from_name(name: &str) -> Option<Tag> {
        Tag::ALL.into_iter().find(|tag| tag.name() == name)
    }
}

/// Elements of an input, as a recipe: the same text gives the same tensor everywhere.
#[derive(Debug, Clone)]
pub enum Fill {
    /// Evenly spread over `[low, high)`, integers included.
    Uniform {
        /// The least.
        low: f64,
        /// Beyond the greatest.
        high: f64,
        /// Of the generator.
        seed: u64,
    },
    /// Integers of `[low, high)`, whatever the type.
    Whole {
        /// The least.
        low: i64,
        /// Beyond the greatest.
        high: i64,
        /// Of the generator.
        seed: u64,
    },
    /// A large number, then 64 that are half a step of it, and so on: a sum that is kept in the type itself
    /// stops at the large number.
    Stagnation,
    /// Special values among ordinary ones.
    Special {
        /// Of the generator.
        seed: u64,
    },
    /// Numbers of which the square overflows, far from the end of the range, among ordinary ones.
    Huge {
        /// Of the generator.
        seed: u64,
    },
    /// The numbers from 0 up, in an order of the generator.
    Permutation {
        /// Of the generator.
        seed: u64,
    },
    /// These elements.
    Explicit(Tensor),
}

/// One input.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub dims: Vec<i64>,
    /// Elements.
    pub fill: Fill,
    /// Whether its value is known when the kernel is made.
    pub constant: bool,
}

/// One call: attributes and inputs.
#[derive(Debug, Clone)]
pub struct CheckCase {
    /// Unique for the subject.
    pub name: String,
    /// Its purpose.
    pub tags: Vec<Tag>,
    /// Every attribute of the op's definition.
    pub attrs: AttrMap,
    /// The inputs in order.
    pub inputs: Vec<Argument>,
}

impl CheckCase {
    /// Whether it is there for this.
    pub fn is(&self, tag: Tag) -> bool {
        self.tags.contains(&tag)
    }
}
