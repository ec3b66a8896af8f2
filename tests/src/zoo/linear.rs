//! Solves small systems of linear equations, for weights that must give exact values.

/// The shortest vector whose products with `vectors` are `values`. The vectors must be linearly independent.
pub(super) fn functional(vectors: &[Vec<f32>], values: &[f64]) -> Vec<f32> {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    let products = vectors.iter().map(|a| vectors.iter().map(|b| product(a, b)).collect()).collect();
    let factors = solve(products, values.to_vec());
    let mut sum = vec![0.0f64; vectors[0].len()];
    for (vector, factor) in vectors.iter().zip(factors) {
        sum.iter_mut().zip(vector).for_each(|(x, y)| *x += factor * f64::from(*y));
    }
    sum.into_iter().map(|x| x as f32).collect()
}

/// [`functional`] for many lists of values.
pub(super) fn functionals(vectors: &[Vec<f32>], values: &[Vec<f64>]) -> Vec<Vec<f32>> {
    values.iter().map(|values| functional(vectors, values)).collect()
}

/// Solves `matrix * x = values` for a matrix that is symmetric and positive: elimination needs no exchange of rows.
fn solve(mut matrix: Vec<Vec<f64>>, mut values: Vec<f64>) -> Vec<f64> {
    let n = values.len();
    for pivot in 0..n {
        let row = matrix[pivot].clone();
        assert!(row[pivot] > 1e-6, "the vectors are not independent");
        for below in pivot + 1..n {
            let factor = matrix[below][pivot] / row[pivot];
            matrix[below][pivot..].iter_mut().zip(&row[pivot..]).for_each(|(x, y)| *x -= factor * y);
            values[below] -= factor * values[pivot];
        }
    }
    for pivot in (0..n).rev() {
        let known: f64 = (pivot + 1..n).map(|column| matrix[pivot][column] * values[column]).sum();
        values[pivot] = (values[pivot] - known) / matrix[pivot][pivot];
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn products_are_the_values() {
        let vectors: Vec<Vec<f32>> = (0..40)
            .map(|i| {
                let mut vector = vec![0.0; 64];
                Rng::new(0, "linear", i).fill_signs(1.0, &mut vector);
                vector
            })
            .collect();
        let values: Vec<f64> = (0..40).map(|i| f64::from(i % 3)).collect();
        let found = functional(&vectors, &values);
        for (vector, value) in vectors.iter().zip(values) {
            let product: f32 = vector.iter().zip(&found).map(|(x, y)| x * y).sum();
            assert!((f64::from(product) - value).abs() < 1e-4, "{product} for {value}");
        }
    }
}
