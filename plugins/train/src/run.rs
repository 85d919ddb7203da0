//! The loops over elements, for several instruction sets.

use crate::{
    lane::{Lane, Trained},
    rules::{OfRest, Rule},
};
use tenon_vectors::vectorised;

/// Nothing, where a rule has fewer variables.
#[inline(always)]
fn none<T: Trained>() -> T::Lane {
    T::Lane::of(0.0)
}

vectorised! {
    fn one[T: Trained, R: Rule<T::Lane>](rule: &R, x: &mut [T], gradient: &[T]) {
        let rule = *rule;
        for (x, gradient) in x.iter_mut().zip(gradient) {
            let after = rule.update([x.up(), none::<T>(), none::<T>(), none::<T>()], gradient.up());
            *x = T::down(after[0]);
        }
    }
}

vectorised! {
    fn two[T: Trained, R: Rule<T::Lane>](rule: &R, x: &mut [T], y: &mut [T], gradient: &[T]) {
        let rule = *rule;
        for ((x, y), gradient) in x.iter_mut().zip(y).zip(gradient) {
            let after = rule.update([x.up(), y.up(), none::<T>(), none::<T>()], gradient.up());
            *x = T::down(after[0]);
            *y = T::down(after[1]);
        }
    }
}

vectorised! {
    fn three[T: Trained, R: Rule<T::Lane>](
        rule: &R, x: &mut [T], y: &mut [T], z: &mut [T], gradient: &[T]
    ) {
        let rule = *rule;
        for (((x, y), z), gradient) in x.iter_mut().zip(y).zip(z).zip(gradient) {
            let after = rule.update([x.up(), y.up(), z.up(), none::<T>()], gradient.up());
            *x = T::down(after[0]);
            *y = T::down(after[1]);
            *z = T::down(after[2]);
        }
    }
}

vectorised! {
    fn four[T: Trained, R: Rule<T::Lane>](
        rule: &R, x: &mut [T], y: &mut [T], z: &mut [T], w: &mut [T], gradient: &[T]
    ) {
        let rule = *rule;
        for ((((x, y), z), w), gradient) in x.iter_mut().zip(y).zip(z).zip(w).zip(gradient) {
            let after = rule.update([x.up(), y.up(), z.up(), w.up()], gradient.up());
            *x = T::down(after[0]);
            *y = T::down(after[1]);
            *z = T::down(after[2]);
            *w = T::down(after[3]);
        }
    }
}

/// Updates as many elements of the variables as the gradient has; the ones from `whole` on are of an
/// incomplete packet ([`Lane::PACKET`]).
pub fn update<T: Trained, R: Rule<T::Lane>, const N: usize>(
    rule: &R,
    variables: [&mut [T]; N],
    gradient: &[T],
    whole: usize,
) {
    if T::Lane::PACKET == 1 || whole >= gradient.len() {
        return all(rule, variables, gradient);
    }
    let (first, rest) = gradient.split_at(whole);
    let mut ends: [&mut [T]; N] = [(); N].map(|()| Default::default());
    let mut at = 0;
    let starts: [&mut [T]; N] = variables.map(|variable| {
        let (start, end) = variable.split_at_mut(whole);
        ends[at] = end;
        at += 1;
        start
    });
    all(rule, starts, first);
    all(&OfRest(*rule), ends, rest);
}

/// How many of the elements of a row or a variable are of whole packets.
pub fn whole_packets<T: Trained>(len: usize) -> usize {
    len - len % T::Lane::PACKET
}

fn all<T: Trained, R: Rule<T::Lane>, const N: usize>(
    rule: &R,
    variables: [&mut [T]; N],
    gradient: &[T],
) {
    let mut variables = variables.into_iter();
    let mut next = || variables.next().unwrap_or_default();
    match N {
        1 => one(rule, next(), gradient),
        2 => two(rule, next(), next(), gradient),
        3 => three(rule, next(), next(), next(), gradient),
        _ => four(rule, next(), next(), next(), next(), gradient),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Given, adaptive::adagrad::Adagrad};
    use tenon_sdk::f16;

    #[test]
    fn the_elements_of_an_incomplete_packet_are_rounded_twice() {
        let one = f16::ONE.up();
        let given = Given { scalars: [one; 8], step: 0, flag: false, is_single: false };
        let rule = Adagrad::new(&given).unwrap();
        // Without an update of the slot a step is the reciprocal root of 5.5.
        let (mut x, mut y) = ([f16::ZERO; 11], [f16::from_f32(5.5); 11]);
        update(&rule, [&mut x, &mut y], &[f16::ONE; 11], whole_packets::<f16>(11));
        let root = f16::from_f32(5.5f32.sqrt()).to_f32();
        let (once, twice) = (f16::from_f32(-1.0 / 5.5f32.sqrt()), f16::from_f32(-1.0 / root));
        assert_ne!(once, twice);
        assert_eq!((&x[..8], &x[8..]), (&[once; 8][..], &[twice; 3][..]));
        // In float there is no such difference.
        assert_eq!(whole_packets::<f32>(11), 11);
    }
}
