//! From values to places on an axis, and the places of its ticks.

/// An axis of a drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    log: bool,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

/// Fewer decades than this are ticked at 1, 2 and 5, not at powers of ten alone.
const FEW_DECADES: f64 = 2.6;

impl Scale {
    /// An axis on which equal differences are equally long, for values of `from` to `to`.
    pub fn linear(from: f64, to: f64) -> Scale {
        let to = if to > from { to } else { from + 1.0 };
        Scale { log: false, from, to, start: 0.0, end: 1.0 }
    }

    /// An axis on which equal ratios are equally long. Values are positive.
    pub fn log(from: f64, to: f64) -> Scale {
        let from = if from > 0.0 && from.is_finite() { from } else { 1.0 };
        let to = if to > from && to.is_finite() { to } else { from * 10.0 };
        Scale { log: true, from, to, start: 0.0, end: 1.0 }
    }

    /// The same axis between two places of a drawing.
    pub fn on(self, start: f64, end: f64) -> Scale {
        Scale { start, end, ..self }
    }

    /// The first and the last value.
    pub fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// Where a value is; outside ones are at the ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Pixels of a decade, or of one.
    pub fn unit(&self) -> f64 {
        let units = if self.log { (self.to / self.from).log10() } else { self.to - self.from };
        (self.end - self.start).abs() / units
    }

    /// Values for ticks that are at least `apart` pixels from each other.
    pub fn ticks(&self, apart: f64) -> Vec<f64> {
        let room = ((self.end - self.start).abs() / apart).floor().max(1.0);
        let decades = if self.log { (self.to / self.from).log10() } else { 0.0 };
        if !self.log || decades < 0.7 {
            return self.even_ticks(room);
        }
        let steps: &[f64] =
            if decades < FEW_DECADES && room >= 3.0 * decades { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = (decades / room).ceil().max(1.0) as i32;
        let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        let values = powers.flat_map(|power| steps.iter().map(move |s| s * 10f64.powi(power)));
        values.filter(|value| self.holds(*value)).collect()
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn even_ticks(&self, room: f64) -> Vec<f64> {
        let least = (self.to - self.from) / room;
        let power = 10f64.powf(least.log10().floor());
        let wanted = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= least * 0.999);
        let step = wanted.unwrap_or(10.0) * power;
        let (first, last) = ((self.from / step).floor() as i64, (self.to / step).ceil() as i64);
        let values = (first..=last).map(|at| at as f64 * step);
        values.filter(|value| self.holds(*value)).collect()
    }

    fn holds(&self, value: f64) -> bool {
        let slack = 1e-9 * (self.to - self.from);
        value >= self.from - slack && value <= self.to + slack
    }
}

/// The least and the greatest of values; `None` without any that is finite.
pub fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// A number beside a tick: as few digits as it needs.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if (1e-4..1e6).contains(&size) => {
            let text = format!("{value:.6}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_values() {
        let log = Scale::log(1.0, 100.0).on(0.0, 200.0);
        assert!((log.at(10.0) - 100.0).abs() < 1e-9 && (log.unit() - 100.0).abs() < 1e-9);
        assert_eq!((log.at(0.0), log.at(1e9)), (0.0, 200.0));
        let down = Scale::linear(0.0, 4.0).on(100.0, 0.0);
        assert_eq!((down.at(1.0), down.unit()), (75.0, 25.0));
    }

    #[test]
    fn ticks_stand_at_1_2_5_or_powers() {
        let log = |from, to| Scale::log(from, to).on(0.0, 600.0).ticks(60.0);
        assert_eq!(log(1.0, 100.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(log(1.0, 1e4), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(log(10.0, 14.0), [10.0, 10.5, 11.0, 11.5, 12.0, 12.5, 13.0, 13.5, 14.0]);
        let linear = Scale::linear(-0.1, 0.3).on(0.0, 300.0).ticks(60.0);
        let expected = [-0.1, 0.0, 0.1, 0.2, 0.3];
        assert!(linear.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{linear:?}");
    }

    #[test]
    fn ticks_keep_their_distance() {
        for decades in 1..24 {
            let scale = Scale::log(1.0, 10f64.powi(decades)).on(0.0, 250.0);
            let places: Vec<f64> = scale.ticks(50.0).iter().map(|v| scale.at(*v)).collect();
            assert!(!places.is_empty(), "{decades}");
            assert!(decades < 3 || places.windows(2).all(|p| p[1] - p[0] >= 20.0), "{places:?}");
        }
    }

    #[test]
    fn an_axis_without_length_is_given_one() {
        for scale in [Scale::log(5.0, 5.0), Scale::linear(5.0, 5.0), Scale::log(0.0, f64::NAN)] {
            let (from, to) = scale.ends();
            assert!(to > from, "{scale:?}");
        }
    }

    #[test]
    fn numbers_beside_ticks_are_short() {
        let shown = [0.0, 0.05, 2.5, 1000.0, 2e7].map(number);
        assert_eq!(shown, ["0", "0.05", "2.5", "1000", "2e7"]);
        assert_eq!(range([3.0, f64::NAN, 1.0].into_iter()), Some((1.0, 3.0)));
    }
}
