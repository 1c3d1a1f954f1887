//! Lets the linker leave Python's own symbols to the interpreter that loads the module (on macOS).

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
