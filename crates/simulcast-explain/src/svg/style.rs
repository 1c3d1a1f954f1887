//! The style of pictures, light and dark.
//!
//! Everything is below `.simulcast`, since a style inside a picture applies to the whole page that
//! shows it. There are no custom properties and no nesting: viewers other than browsers know
//! neither. Borders carry the meaning; colours only tell operands apart.

/// The style sheet inside every picture.
pub(crate) const CSS: &str = "\
.simulcast{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
max-width:100%;height:auto}
.simulcast text{fill:#1f2933;stroke:none;font-size:12px;white-space:pre}
.simulcast .sc-paper{fill:#ffffff;stroke:none}
.simulcast .sc-title{font-size:16px;font-weight:600}
.simulcast .sc-small{font-size:11px;fill:#52606d}
.simulcast .sc-code,.simulcast .sc-cell{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\
'DejaVu Sans Mono',monospace}
.simulcast .sc-code{font-weight:600}
.simulcast .sc-cell{font-size:11px;text-anchor:middle;pointer-events:none}
.simulcast .sc-tick{font-size:10px;fill:#616e7c;text-anchor:middle;pointer-events:none}
.simulcast .sc-band{fill:#f5f7fa;stroke:none}
.simulcast .sc-stored{fill:#e4e7eb;stroke:#3e4c59;stroke-width:1.6}
.simulcast .sc-virtual{fill:#ffffff;stroke:#3e4c59;stroke-width:1.6;stroke-dasharray:0.1 3.4;\
stroke-linecap:round}
.simulcast .sc-empty{fill:none;stroke:#3e4c59;stroke-width:1.4;stroke-dasharray:7 4}
.simulcast .sc-clash{fill:#ffffff;stroke:#b42318;stroke-width:3.4}
.simulcast .sc-result{fill:#ffffff;stroke:#1f2933;stroke-width:2.2}
.simulcast .sc-line{fill:none;stroke:#9aa5b1;stroke-width:1}
.simulcast .sc-link{fill:none;stroke:#7b8794;stroke-width:1.2}
.simulcast .sc-again{fill:none;stroke:#7b8794;stroke-width:1.4;stroke-dasharray:0.1 3.4;\
stroke-linecap:round}
.simulcast .sc-head{fill:#7b8794;stroke:none}
.simulcast .sc-sign{fill:#b42318;stroke:none}
.simulcast .sc-o0 .sc-stored{fill:#d9e8fb;stroke:#1d5fb8}
.simulcast .sc-o0 .sc-virtual{stroke:#1d5fb8}
.simulcast .sc-o1 .sc-stored{fill:#fde7d2;stroke:#b3540e}
.simulcast .sc-o1 .sc-virtual{stroke:#b3540e}
.simulcast .sc-o2 .sc-stored{fill:#d8f0df;stroke:#1b7a3d}
.simulcast .sc-o2 .sc-virtual{stroke:#1b7a3d}
.simulcast .sc-o3 .sc-stored{fill:#eadffa;stroke:#6b3fb5}
.simulcast .sc-o3 .sc-virtual{stroke:#6b3fb5}
.simulcast .sc-lit.sc-lit.sc-lit{fill:#ffe45c;stroke:#1f2933;stroke-width:3.4}
@media (prefers-color-scheme:dark){
.simulcast text{fill:#e4e7eb}
.simulcast .sc-paper{fill:#14181d}
.simulcast .sc-small{fill:#9fb0c0}
.simulcast .sc-tick{fill:#94a3b2}
.simulcast .sc-band{fill:#1b2129}
.simulcast .sc-stored{fill:#323f4b;stroke:#b8c4d0}
.simulcast .sc-virtual{fill:#14181d;stroke:#b8c4d0}
.simulcast .sc-empty{stroke:#b8c4d0}
.simulcast .sc-clash{fill:#14181d;stroke:#ff8a7a}
.simulcast .sc-result{fill:#14181d;stroke:#e4e7eb}
.simulcast .sc-line{stroke:#52606d}
.simulcast .sc-link,.simulcast .sc-again{stroke:#8795a3}
.simulcast .sc-head{fill:#8795a3}
.simulcast .sc-sign{fill:#ff8a7a}
.simulcast .sc-o0 .sc-stored{fill:#17365f;stroke:#7db4ff}
.simulcast .sc-o0 .sc-virtual{stroke:#7db4ff}
.simulcast .sc-o1 .sc-stored{fill:#54300f;stroke:#ffb067}
.simulcast .sc-o1 .sc-virtual{stroke:#ffb067}
.simulcast .sc-o2 .sc-stored{fill:#14432a;stroke:#6fd598}
.simulcast .sc-o2 .sc-virtual{stroke:#6fd598}
.simulcast .sc-o3 .sc-stored{fill:#3d2768;stroke:#c4a3ff}
.simulcast .sc-o3 .sc-virtual{stroke:#c4a3ff}
.simulcast .sc-lit.sc-lit.sc-lit{fill:#7a5c00;stroke:#ffffff}
}
";
