//! A library of functions, with an index of their names.

use crate::{FunctionDef, FunctionDefLibrary};
use std::collections::{HashMap, HashSet};

/// The functions of a graph, and which of them are gradients of others. Finding a function by its name, and adding one,
/// take the same time however many there are.
///
/// ```
/// use tenon_proto::{FunctionDef, FunctionDefLibrary, FunctionLibrary, OpDef};
///
/// let signature = OpDef { name: "f".into(), ..OpDef::default() };
/// let f = FunctionDef { signature: Some(signature), ..FunctionDef::default() };
/// let mut library = FunctionLibrary::default();
/// library.merge(&FunctionDefLibrary { function: vec![f.clone()], ..FunctionDefLibrary::default() })?;
/// assert_eq!(library.function("f"), Some(&f));
/// assert_eq!(library.function("g"), None);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FunctionLibrary {
    message: FunctionDefLibrary,
    /// The position of each function by its name.
    functions: HashMap<String, usize>,
    /// The position of the first gradient of each function.
    gradients: HashMap<String, usize>,
    /// The gradients, each as the name of a function and of its gradient.
    pairs: HashSet<(String, String)>,
    registered: HashSet<Vec<u8>>,
}

fn name_of(function: &FunctionDef) -> &str {
    function.signature.as_ref().map_or("", |signature| &signature.name)
}

impl FunctionLibrary {
    /// The library as a message.
    pub fn message(&self) -> &FunctionDefLibrary {
        &self.message
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&FunctionDef> {
        let function = self.message.function.get(*self.functions.get(name)?)?;
        function.signature.is_some().then_some(function)
    }

    /// The name of the gradient that the library has for a function; the first one, where it has several.
    pub fn gradient(&self, function: &str) -> Option<&str> {
        let gradient = self.message.gradient.get(*self.gradients.get(function)?)?;
        Some(&gradient.gradient_func)
    }

    /// The names of all functions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.message.function.iter().filter_map(|f| Some(f.signature.as_ref()?.name.as_str()))
    }

    /// Adds the functions and gradients of another library that this one does not have yet.
    ///
    /// # Errors
    /// The name of a function of which each library has another definition. This library is then unchanged.
    pub fn merge(&mut self, add: &FunctionDefLibrary) -> Result<(), String> {
        let mut new: HashMap<&str, &FunctionDef> = HashMap::new();
        for function in &add.function {
            let name = name_of(function);
            let have = self.functions.get(name).map(|&at| &self.message.function[at]);
            let have = have.or(new.get(name).copied());
            if have.is_some_and(|have| have != function) {
                return Err(name.to_owned());
            }
            new.entry(name).or_insert(function);
        }
        for function in &add.function {
            if !self.functions.contains_key(name_of(function)) {
                self.functions.insert(name_of(function).to_owned(), self.message.function.len());
                self.message.function.push(function.clone());
            }
        }
        for gradient in &add.gradient {
            let pair = (gradient.function_name.clone(), gradient.gradient_func.clone());
            if self.pairs.insert(pair) {
                let at = self.message.gradient.len();
                self.gradients.entry(gradient.function_name.clone()).or_insert(at);
                self.message.gradient.push(gradient.clone());
            }
        }
        for encoded in &add.registered_gradients {
            if self.registered.insert(encoded.to_vec()) {
                self.message.registered_gradients.push(encoded.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GradientDef, OpDef};

    fn function(name: &str, summary: &str) -> FunctionDef {
        let signature =
            OpDef { name: name.to_owned(), summary: summary.to_owned(), ..OpDef::default() };
        FunctionDef { signature: Some(signature), ..FunctionDef::default() }
    }

    fn of(functions: &[FunctionDef]) -> FunctionDefLibrary {
        FunctionDefLibrary { function: functions.to_vec(), ..FunctionDefLibrary::default() }
    }

    #[test]
    fn equal_functions_are_kept_once() {
        let (f, g) = (function("f", ""), function("g", ""));
        let mut library = FunctionLibrary::default();
        library.merge(&of(&[f.clone(), f.clone()])).unwrap();
        library.merge(&of(&[g.clone(), f.clone()])).unwrap();
        assert_eq!(library.message(), &of(&[f, g.clone()]));
        assert_eq!(library.function("g"), Some(&g));
        assert_eq!(library.names().collect::<Vec<_>>(), ["f", "g"]);
    }

    #[test]
    fn a_conflict_changes_nothing() {
        let mut library = FunctionLibrary::default();
        library.merge(&of(&[function("f", "")])).unwrap();
        let other = of(&[function("g", ""), function("f", "another")]);
        assert_eq!(library.merge(&other), Err("f".to_owned()));
        assert_eq!(library.function("g"), None);
        let twice = of(&[function("h", ""), function("h", "another")]);
        assert_eq!(library.merge(&twice), Err("h".to_owned()));
        assert_eq!(library.names().collect::<Vec<_>>(), ["f"]);
    }

    #[test]
    fn the_first_gradient_counts() {
        let gradient = |of: &str, is: &str| GradientDef {
            function_name: of.to_owned(),
            gradient_func: is.to_owned(),
        };
        let add = FunctionDefLibrary {
            gradient: vec![gradient("f", "a"), gradient("f", "b"), gradient("f", "a")],
            ..FunctionDefLibrary::default()
        };
        let mut library = FunctionLibrary::default();
        library.merge(&add).unwrap();
        library.merge(&add).unwrap();
        assert_eq!(library.gradient("f"), Some("a"));
        assert_eq!(library.gradient("g"), None);
        assert_eq!(library.message().gradient, add.gradient[..2]);
    }
}
