//! Dividing the rows of one batch among the sequences that are decoded together.

/// How many tokens each sequence may draft when it wants so many and all rows together must not be more than `rows`. Each has
/// a row for its last token anyway; the others are dealt out evenly, the odd ones to the first.
pub(super) fn share(wanted: &[usize], rows: usize) -> Vec<usize> {
    let mut given = vec![0; wanted.len()];
    let mut spare = rows.saturating_sub(wanted.len());
    loop {
        let open = wanted.iter().zip(&given).filter(|(wanted, given)| given < wanted).count();
        if open == 0 || spare == 0 {
            return given;
        }
        let each = (spare / open).max(1);
        for (wanted, given) in wanted.iter().zip(&mut given) {
            let more = (wanted - *given).min(each).min(spare);
            *given += more;
            spare -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_wanted_goes_to_others() {
        assert_eq!(share(&[12], 13), [12]);
        assert_eq!(share(&[12], 9), [8]);
        assert_eq!(share(&[1, 12], 12), [1, 9]);
        assert_eq!(share(&[5, 5, 5], 8), [2, 2, 1]);
        assert_eq!(share(&[5, 5], 1), [0, 0]);
    }

    proptest! {
        #[test]
        fn rows_are_used_up_and_evenly_dealt(wanted in proptest::collection::vec(0usize..20, 1..12), rows in 0usize..80) {
            let given = share(&wanted, rows);
            let (sum, all): (usize, usize) = (given.iter().sum(), wanted.iter().sum());
            prop_assert_eq!(sum, all.min(rows.saturating_sub(wanted.len())));
            prop_assert!(given.iter().zip(&wanted).all(|(given, wanted)| given <= wanted));
            // Nobody who wants more has less than another by two or more.
            let short = given.iter().zip(&wanted).filter(|(given, wanted)| given < wanted).map(|(given, _)| *given).min();
            if let Some(short) = short {
                prop_assert!(given.iter().all(|given| *given <= short + 1));
            }
        }
    }
}
