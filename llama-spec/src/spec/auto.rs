//! Choosing what fits the files, and checking what was chosen.

use super::config::Choice;
use super::{Method, SpecConfig, Speculation};
use crate::compat::{Conditions, Facts, Incompatible, Side, clamped, method_for, refusal};
use crate::file::{Kind, ModelFile};
use serde::{Deserialize, Serialize};

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requested {
    /// Whatever fits the files.
    Auto,
    /// These methods; none for plain decoding.
    #[serde(untagged)]
    Methods(Vec<Method>),
}

impl SpecConfig {
    /// What fits these files under the usual conditions; see [`SpecConfig::auto_with`].
    ///
    /// ```
    /// use llama_spec::file::ModelFile;
    /// use llama_spec::spec::{Method, SpecConfig};
    /// # use llama_spec_tests::zoo;
    ///
    /// let target = ModelFile::open(zoo::file("target"))?;
    /// let draft = ModelFile::open(zoo::file("draft-0.8"))?;
    /// assert_eq!(SpecConfig::auto(&target, Some(&draft))?.effective(), [Method::DraftSimple]);
    /// assert_eq!(SpecConfig::auto(&target, None)?.effective(), [Method::Lookup]);
    ///
    /// let other = ModelFile::open(zoo::file("draft-other-vocabulary"))?;
    /// let why = SpecConfig::auto(&target, Some(&other)).unwrap_err();
    /// assert!(why.has("vocab-text"));
    /// println!("{why}"); // names the first token that differs
    /// # Ok::<_, llama_spec::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SpecConfig::auto_with`].
    pub fn auto(target: &ModelFile, draft: Option<&ModelFile>) -> Result<Self, Incompatible> {
        Self::auto_with(target, draft, &Conditions::default())
    }

    /// What fits these files under these conditions: with a draft its kind decides, without one the target's own MTP heads
    /// are used if they work, and `lookup` otherwise. It looks at what is in the files, never at their
    /// names or at the environment.
    ///
    /// # Errors
    /// Every rule that refuses what the draft is for, or any speculation with this target.
    pub fn auto_with(
        target: &ModelFile,
        draft: Option<&ModelFile>,
        conditions: &Conditions,
    ) -> Result<Self, Incompatible> {
        Self::choose(target, draft, conditions).check(target, draft, conditions)
    }

    /// As [`SpecConfig::auto_with`], but what is not possible is given up: lookup drafting takes its place if the target
    /// allows it, else there is no speculation. [`SpecConfig::reason`] says why.
    pub fn auto_or_degrade(target: &ModelFile, draft: Option<&ModelFile>, conditions: &Conditions) -> Self {
        Self::choose(target, draft, conditions).or_degrade(target, draft, conditions)
    }

    /// This configuration with the lengths that the files allow.
    ///
    /// # Errors
    /// Every rule that refuses it with these files and conditions.
    pub fn check(
        &self,
        target: &ModelFile,
        draft: Option<&ModelFile>,
        conditions: &Conditions,
    ) -> Result<Self, Incompatible> {
        checked(&Facts::new(target, draft, self, conditions))
    }

    /// As [`SpecConfig::check`], but what is not possible is given up as by [`SpecConfig::auto_or_degrade`]. Lookup methods that
    /// were asked for beside others stay.
    pub fn or_degrade(&self, target: &ModelFile, draft: Option<&ModelFile>, conditions: &Conditions) -> Self {
        match self.check(target, draft, conditions) {
            Ok(config) => config,
            Err(why) => self.without_what_failed(why.summary(), target, conditions),
        }
    }

    /// The best that is left when this does not work for a reason that was found out otherwise: the lookup methods without the
    /// one that drafts with a model or with heads, then lookup drafting as usual, then nothing.
    pub(crate) fn without_what_failed(&self, reason: String, target: &ModelFile, conditions: &Conditions) -> Self {
        let reason = match self.reason() {
            Some(before) => format!("{before}; {reason}"),
            None => reason,
        };
        let choice = Some(Choice { requested: self.requested(), reason, first: self.first() });
        let lookup: Vec<Method> = self.methods.iter().copied().filter(|method| method.is_lookup()).collect();
        let some_are_left = !lookup.is_empty() && lookup.len() < self.methods.len();
        let rest = some_are_left.then(|| Self { methods: lookup, choice: choice.clone(), ..self.clone() });
        let usual = Self { choice: choice.clone(), ..Self::new([Method::Lookup]) };
        let usual = Some(usual).filter(|_| self.methods != [Method::Lookup]);
        let mut left = [rest, usual].into_iter().flatten();
        let works = left.find_map(|config| config.check(target, None, conditions).ok());
        works.unwrap_or_else(|| Self { choice, ..Self::off() })
    }

    /// What was asked for.
    pub fn requested(&self) -> Requested {
        match &self.choice {
            Some(choice) => choice.requested.clone(),
            None => Requested::Methods(self.methods.clone()),
        }
    }

    /// The methods in force, in the order in which they are asked for drafts.
    pub fn effective(&self) -> Vec<Method> {
        Method::ALL.into_iter().filter(|method| self.methods.contains(method)).collect()
    }

    /// What was chosen before anything was given up.
    fn first(&self) -> Vec<Method> {
        match &self.choice {
            Some(choice) if !choice.first.is_empty() => choice.first.clone(),
            _ => self.effective(),
        }
    }

    /// Why these methods, if they were not asked for by name.
    pub fn reason(&self) -> Option<&str> {
        self.choice.as_ref().map(|choice| choice.reason.as_str())
    }

    /// What was asked for, what is in force and why. For [`SpecConfig::auto`], what was chosen counts as asked for.
    pub fn speculation(&self) -> Speculation {
        let requested = match self.requested() {
            Requested::Methods(methods) => methods,
            Requested::Auto => self.first(),
        };
        Speculation {
            requested,
            effective: self.effective(),
            reason: self.reason().map(str::to_owned),
            own_drafters: 0,
        }
    }

    /// What [`SpecConfig::auto_with`] would choose, not checked yet: to set lengths first, or for a [`Report`].
    ///
    /// [`Report`]: crate::compat::Report
    pub fn choose(target: &ModelFile, draft: Option<&ModelFile>, conditions: &Conditions) -> Self {
        let heads = Self::auto_of(Method::DraftMtp, "the target has MTP heads of its own".into());
        if let Some(draft) = draft {
            let method = method_for(&Side::of(target), &Side::of(draft));
            return Self::for_draft(method, draft.kind());
        }
        if target.kind() != Kind::GenerativeWithMtp {
            return Self::auto_of(Method::Lookup, "no draft was given and the target has no MTP heads".into());
        }
        match heads.check(target, None, conditions) {
            Ok(_) => heads,
            Err(why) => {
                let reason = format!("the target's MTP heads cannot be used: {}", why.summary());
                Self::auto_of(Method::Lookup, reason)
            }
        }
    }

    /// The choice for a draft of this kind.
    pub(crate) fn for_draft(method: Option<Method>, kind: Kind) -> Self {
        // What is no draft gets the method of a plain draft, so that the rules say what it is.
        Self::auto_of(method.unwrap_or(Method::DraftSimple), format!("the draft is {kind}"))
    }

    fn auto_of(method: Method, reason: String) -> Self {
        Self { choice: Some(Choice { requested: Requested::Auto, reason, first: Vec::new() }), ..Self::new([method]) }
    }
}

/// The configuration of these facts if no rule refuses it.
pub(crate) fn checked(facts: &Facts<'_>) -> Result<SpecConfig, Incompatible> {
    match refusal(facts) {
        Some(why) => Err(why),
        None => Ok(clamped(facts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_told() {
        let asked = SpecConfig::new([Method::DraftSimple, Method::NgramMod]);
        assert_eq!(asked.requested(), Requested::Methods(vec![Method::DraftSimple, Method::NgramMod]));
        assert_eq!(asked.effective(), [Method::NgramMod, Method::DraftSimple]);
        assert_eq!(asked.reason(), None);
        let chosen = SpecConfig::for_draft(Some(Method::DraftMtp), Kind::Gemma4Assistant);
        assert_eq!((chosen.requested(), chosen.effective()), (Requested::Auto, vec![Method::DraftMtp]));
        assert_eq!(chosen.reason(), Some("the draft is a Gemma 4 assistant"));
        assert_eq!(chosen.speculation().requested, [Method::DraftMtp]);
    }

    #[test]
    fn the_choice_survives_json() {
        assert_eq!(serde_json::to_string(&Requested::Auto).unwrap(), r#""auto""#);
        let methods = Requested::Methods(vec![Method::NgramMod]);
        assert_eq!(serde_json::to_string(&methods).unwrap(), r#"["ngram-mod"]"#);
        assert_eq!(serde_json::from_str::<Requested>(r#"["ngram-mod"]"#).unwrap(), methods);
        let chosen = SpecConfig::for_draft(Some(Method::DraftMtp), Kind::MtpHead);
        let json = serde_json::to_string(&chosen).unwrap();
        assert_eq!(serde_json::from_str::<SpecConfig>(&json).unwrap(), chosen);
    }
}
