//! `simulcast codes`: what a code of an error or a finding means.

use std::fmt::Write as _;

use simulcast_core::Code;

use crate::{Failure, output};

pub(crate) fn run(code: Option<&str>) -> Result<(), Failure> {
    let Some(code) = code else {
        let lines = Code::ALL.iter().map(|code| format!("{:<7}{}\n", code.code, code.title));
        return output::put(lines.collect::<String>());
    };
    let code = Code::find(code).ok_or_else(|| {
        Failure::Usage(format!("there is no code {code:?}; simulcast codes lists them"))
    })?;
    let mut text = format!("{}: {}\n\n{}\n", code.code, code.title, code.explanation);
    if !code.example.is_empty() {
        let _ = write!(text, "\nexample: simulcast {}\n", code.example);
    }
    output::put(text)
}

#[cfg(test)]
mod tests {
    use simulcast_core::CodeKind;
    use simulcast_onnx::ModelCode;

    use super::*;

    #[test]
    fn findings_of_models_are_in_the_list_of_codes() {
        let listed = Code::ALL.iter().filter(|code| code.kind == CodeKind::Model);
        let listed: Vec<_> = listed.map(|code| (code.code, code.title)).collect();
        let own: Vec<_> = ModelCode::ALL.iter().map(|code| (code.as_str(), code.title())).collect();
        assert_eq!(listed, own);
    }
}
