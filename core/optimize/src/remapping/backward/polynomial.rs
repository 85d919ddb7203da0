//! Polynomials in the values of a function and of its gradient.
//!
//! Nodes that differ in form and order compute the same polynomial. Coefficients are compared up to
//! what constants of the element type may differ from exact ones; where terms cancel, relative to
//! the size of what was added.

use std::collections::BTreeMap;

/// A value of which polynomials are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Atom {
    /// The operand of the function.
    X,
    /// The gradient of its result.
    Gradient,
    /// The scale of a normalisation.
    Scale,
    /// The mean of a row of the operand.
    Mean,
    /// `1 / sqrt(variance + epsilon)` of a row of the operand.
    Root,
    /// The error function or the hyperbolic tangent inside the function.
    Curve,
    /// `e^(-x^2 / 2)`.
    Bell,
    /// The sum of `scale * gradient` over a row.
    Sum,
    /// The sum of `scale * gradient * x` over a row.
    WeightedSum,
}

/// The number of atoms.
const ATOMS: usize = 9;
/// Atoms with one value for each row.
const OF_ROW: [Atom; 4] = [Atom::Mean, Atom::Root, Atom::Sum, Atom::WeightedSum];
/// The greatest power, and the greatest number of terms.
const MOST_POWER: i8 = 16;
const MOST_TERMS: usize = 64;

/// The power of each atom in a term.
type Powers = [i8; ATOMS];

/// The terms that have sums over rows, and the atom of each: of 1, and of the operand, it is the
/// length of a row times what the atom stands for.
const SUMS: [(&[Atom], Option<Atom>); 4] = [
    (&[], None),
    (&[Atom::X], Some(Atom::Mean)),
    (&[Atom::Gradient, Atom::Scale], Some(Atom::Sum)),
    (&[Atom::X, Atom::Gradient, Atom::Scale], Some(Atom::WeightedSum)),
];

fn powers_of(factors: &[Atom]) -> Powers {
    let mut powers = [0; ATOMS];
    factors.iter().for_each(|atom| powers[*atom as usize] += 1);
    powers
}

#[derive(Debug, Clone, Copy, Default)]
struct Coefficient {
    value: f64,
    /// The sum of the absolute values that were added.
    size: f64,
}

/// A sum of terms, each a coefficient and powers of atoms.
#[derive(Debug, Clone, Default)]
pub(super) struct Polynomial(BTreeMap<Powers, Coefficient>);

impl Polynomial {
    /// A number.
    pub fn number(value: f64) -> Polynomial {
        Polynomial::term(value, &[])
    }

    /// A number times powers of atoms.
    pub fn term(value: f64, factors: &[(Atom, i8)]) -> Polynomial {
        let mut powers = [0; ATOMS];
        for &(atom, power) in factors {
            powers[atom as usize] += power;
        }
        Polynomial([(powers, Coefficient { value, size: value.abs() })].into())
    }

    /// The sum.
    pub fn plus(mut self, other: &Polynomial) -> Polynomial {
        for (powers, term) in &other.0 {
            let sum = self.0.entry(*powers).or_default();
            sum.value += term.value;
            sum.size += term.size;
        }
        self
    }

    /// Each coefficient times a number.
    pub fn scaled(mut self, by: f64) -> Polynomial {
        for term in self.0.values_mut() {
            term.value *= by;
            term.size *= by.abs();
        }
        self
    }

    /// The product; `None` if it is too large.
    pub fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut product = Polynomial::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut powers = *a;
                for (power, more) in powers.iter_mut().zip(b) {
                    *power = power.checked_add(*more).filter(|sum| sum.abs() <= MOST_POWER)?;
                }
                let sum = product.0.entry(powers).or_default();
                sum.value += x.value * y.value;
                sum.size += x.size * y.size;
            }
        }
        (product.0.len() <= MOST_TERMS).then_some(product)
    }

    /// A power with an exponent that is a small number.
    pub fn power(&self, exponent: f64) -> Option<Polynomial> {
        let times = (exponent.fract() == 0.0 && (0.0..=4.0).contains(&exponent))
            .then_some(exponent as usize)?;
        (0..times).try_fold(Polynomial::number(1.0), |power, _| power.times(self))
    }

    /// 1 divided by a single term.
    pub fn reciprocal(&self) -> Option<Polynomial> {
        let mut terms = self.0.iter();
        let (Some((powers, term)), None) = (terms.next(), terms.next()) else { return None };
        let value = 1.0 / term.value;
        let inverse = Coefficient { value, size: value.abs() };
        value.is_finite().then(|| Polynomial([(powers.map(|power| -power), inverse)].into()))
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        let mut terms = self.0.iter();
        let (Some((powers, term)), None) = (terms.next(), terms.next()) else { return None };
        (*powers == [0; ATOMS]).then_some(term.value)
    }

    /// Whether it is a number times this atom.
    pub fn is_multiple_of(&self, atom: Atom) -> bool {
        self.0.keys().all(|powers| *powers == powers_of(&[atom]))
    }

    /// The sum over rows of this length; `None` if it is none of the sums that atoms stand for.
    pub fn row_sum(&self, length: f64) -> Option<Polynomial> {
        let mut sum = Polynomial::default();
        for (powers, term) in &self.0 {
            let (mut outside, mut inside) = ([0; ATOMS], *powers);
            for atom in OF_ROW {
                outside[atom as usize] = std::mem::take(&mut inside[atom as usize]);
            }
            let (_, atom) = SUMS.iter().find(|(factors, _)| powers_of(factors) == inside)?;
            if let Some(atom) = atom {
                outside[*atom as usize] += 1;
            }
            let factor = if matches!(atom, None | Some(Atom::Mean)) { length } else { 1.0 };
            let own = Coefficient { value: factor * term.value, size: factor * term.size };
            sum = sum.plus(&Polynomial([(outside, own)].into()));
        }
        Some(sum)
    }

    /// Whether both have the same terms.
    pub fn is(&self, other: &Polynomial, tolerance: f64) -> bool {
        let none = Coefficient::default();
        self.0.keys().chain(other.0.keys()).all(|powers| {
            let [a, b] = [self, other].map(|all| all.0.get(powers).unwrap_or(&none));
            (a.value - b.value).abs() <= tolerance * a.size.max(b.size)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x() -> Polynomial {
        Polynomial::term(1.0, &[(Atom::X, 1)])
    }

    #[test]
    fn forms_of_one_polynomial_are_equal() {
        let one = Polynomial::number(1.0);
        let square = x().plus(&one).power(2.0).unwrap();
        let sum = x().power(2.0).unwrap().plus(&x().scaled(2.0)).plus(&one);
        assert!(square.is(&sum, 1e-15));
        assert!(!square.is(&sum.clone().plus(&x().scaled(1e-9)), 1e-12));
        // What cancels is compared with what was added.
        let third = x().scaled(1.0 / 3.0);
        let rest = third.clone().plus(&third).plus(&third).plus(&x().scaled(-1.0));
        assert!(rest.is(&Polynomial::default(), 1e-15));
    }

    #[test]
    fn sums_over_rows_are_atoms() {
        let mean = Polynomial::term(1.0, &[(Atom::Mean, 1)]);
        // The sum of x - mean is 0.
        let centred = x().plus(&mean.clone().scaled(-1.0));
        assert!(centred.row_sum(7.0).unwrap().is(&Polynomial::default(), 1e-15));
        let scaled =
            Polynomial::term(3.0, &[(Atom::Gradient, 1), (Atom::Scale, 1), (Atom::Root, 2)]);
        let expected = Polynomial::term(3.0, &[(Atom::Sum, 1), (Atom::Root, 2)]);
        assert!(scaled.row_sum(7.0).unwrap().is(&expected, 0.0));
        assert!(x().power(2.0).unwrap().row_sum(7.0).is_none());
    }

    #[test]
    fn only_a_single_term_has_a_reciprocal() {
        let half = x().scaled(2.0).reciprocal().unwrap();
        assert!(half.is(&Polynomial::term(0.5, &[(Atom::X, -1)]), 0.0));
        assert!(x().plus(&Polynomial::number(1.0)).reciprocal().is_none());
        assert!(Polynomial::number(0.0).reciprocal().is_none());
        assert!(x().power(1.5).is_none() && x().power(-1.0).is_none());
    }
}
