//! `n=64..4096:*2`

use crate::record::SweepAxis;

/// More points than this are a mistake.
const MOST: usize = 200;

const FORM: &str = "expected SYMBOL=FIRST..LAST, then :*FACTOR or :+STEP where it does not double, such as n=64..4096 or n=64..512:+64";

/// Reads a sweep. The last value counts too.
///
/// # Errors
/// The problem.
pub fn sweep(text: &str) -> Result<SweepAxis, String> {
    let form = || FORM.to_owned();
    let (symbol, range) = text.split_once('=').ok_or_else(form)?;
    if !super::shape::is_symbol(symbol) {
        return Err(format!(
            "'{symbol}' is not a symbol: expected a letter, then letters, digits and '_'"
        ));
    }
    let (range, step) = range.split_once(':').unwrap_or((range, "*2"));
    let (first, last) = range.split_once("..").ok_or_else(form)?;
    let number =
        |text: &str| text.parse::<i64>().map_err(|_| format!("'{text}' is not an integer; {FORM}"));
    let (first, last) = (number(first)?, number(last)?);
    if first < 1 || last < first {
        return Err(format!("expected 1 <= FIRST <= LAST, found {first}..{last}"));
    }
    let next: Box<dyn Fn(i64) -> Option<i64>> = match step.split_at_checked(1) {
        Some(("*", factor)) => {
            let factor = number(factor)?;
            if factor < 2 {
                return Err(format!("a factor is at least 2, found {factor}"));
            }
            Box::new(move |value| value.checked_mul(factor))
        }
        Some(("+", step)) => {
            let step = number(step)?;
            if step < 1 {
                return Err(format!("a step is at least 1, found {step}"));
            }
            Box::new(move |value| value.checked_add(step))
        }
        _ => return Err(form()),
    };
    let all = std::iter::successors(Some(first), |&value| next(value));
    let values: Vec<i64> = all.take_while(|&value| value <= last).take(MOST + 1).collect();
    if values.len() > MOST {
        return Err(format!("more than {MOST} values: take a larger step"));
    }
    Ok(SweepAxis { symbol: symbol.to_owned(), values })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<i64> {
        sweep(text).unwrap().values
    }

    #[test]
    fn a_sweep_doubles_or_goes_by_its_step() {
        assert_eq!(values("n=64..512"), [64, 128, 256, 512]);
        assert_eq!(values("n=64..500"), [64, 128, 256]);
        assert_eq!(values("n=1..100:*10"), [1, 10, 100]);
        assert_eq!(values("size_1=3..9:+3"), [3, 6, 9]);
        assert_eq!(values("n=7..7"), [7]);
        assert_eq!(sweep("width=1..2").unwrap().symbol, "width");
    }

    #[test]
    fn what_is_no_sweep_is_said() {
        let wrong = |text: &str| sweep(text).unwrap_err();
        for text in ["", "n", "n=1", "n=1..", "n=..4", "n=1..4:", "n=1..4:2", "n=a..4"] {
            assert!(wrong(text).contains("n=64..4096"), "{text}: {}", wrong(text));
        }
        assert!(wrong("3=1..4").contains("'3' is not a symbol"));
        assert!(wrong("n=0..4").contains("found 0..4") && wrong("n=5..4").contains("found 5..4"));
        assert!(
            wrong("n=1..4:*1").contains("at least 2") && wrong("n=1..4:+0").contains("at least 1")
        );
        assert!(wrong("n=1..1000000:+1").contains("larger step"));
    }

    #[test]
    fn a_sweep_ends_where_integers_do() {
        let last = *values(&format!("n=1..{}", i64::MAX)).last().unwrap();
        assert_eq!(last, 1 << 62);
    }
}
