//! NVRTC, the compiler of kernels, loaded when the first kernel is not in a cache.
//!
//! It needs no driver and no device, so that everything it says of a kernel can be tested anywhere.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use crate::driver::first_of;
use crate::error::Error;

type Program = *mut c_void;

macro_rules! functions {
    ($($name:ident = $symbol:literal($($argument:ty),*);)*) => {
        /// NVRTC, loaded.
        pub struct Compiler {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            _library: Library,
        }

        impl Compiler {
            fn of(library: Library) -> Result<Self, libloading::Error> {
                // SAFETY: functions of NVRTC's C interface under their own names.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!($symbol, "\0").as_bytes())?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    version = "nvrtcVersion"(*mut c_int, *mut c_int);
    arch_count = "nvrtcGetNumSupportedArchs"(*mut c_int);
    arch_list = "nvrtcGetSupportedArchs"(*mut c_int);
    create = "nvrtcCreateProgram"(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    );
    compile = "nvrtcCompileProgram"(Program, c_int, *const *const c_char);
    cubin_size = "nvrtcGetCUBINSize"(Program, *mut usize);
    cubin = "nvrtcGetCUBIN"(Program, *mut c_char);
    ptx_size = "nvrtcGetPTXSize"(Program, *mut usize);
    ptx = "nvrtcGetPTX"(Program, *mut c_char);
    log_size = "nvrtcGetProgramLogSize"(Program, *mut usize);
    log = "nvrtcGetProgramLog"(Program, *mut c_char);
    destroy = "nvrtcDestroyProgram"(*mut Program);
}

impl std::fmt::Debug for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiler").field("version", &self.version()).finish_non_exhaustive()
    }
}

/// Folders in which NVRTC is looked for, beside those of the system.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Also looks for NVRTC in a folder, such as that of a package of Python's.
pub fn add_compiler_folder(folder: &Path) {
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !folders.iter().any(|own| own == folder) {
        folders.push(folder.to_owned());
    }
}

/// The files that NVRTC may be, those of CUDA `major` first.
fn candidates(major: usize) -> Vec<OsString> {
    let mut majors = [13, 12, 11];
    majors.sort_by_key(|&own| own != major);
    let names: Vec<String> = majors
        .iter()
        .map(|own| match (cfg!(windows), own) {
            (true, 11) => "nvrtc64_112_0.dll".into(),
            (true, _) => format!("nvrtc64_{own}0_0.dll"),
            (false, 11) => "libnvrtc.so.11.2".into(),
            (false, _) => format!("libnvrtc.so.{own}"),
        })
        .collect();
    let mut all: Vec<OsString> = std::env::var_os("SIMULCAST_NVRTC").into_iter().collect();
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for home in ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os) {
        folders.extend(["lib64", "bin"].map(|own| Path::new(&home).join(own)));
    }
    if cfg!(unix) {
        folders.push("/usr/local/cuda/lib64".into());
    }
    for name in &names {
        all.push(name.into());
        let files = folders.iter().map(|folder| folder.join(name)).filter(|file| file.exists());
        all.extend(files.map(PathBuf::into_os_string));
    }
    all
}

/// NVRTC, which is loaded once it is found; of that CUDA where there are several.
pub(crate) fn compiler(major: usize) -> Result<&'static Compiler, Error> {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    if let Some(compiler) = COMPILER.get() {
        return Ok(compiler);
    }
    // What is not found may be found later, in a further folder.
    let loaded = Compiler::load(&candidates(major))?;
    Ok(COMPILER.get_or_init(|| loaded))
}

/// What a kernel is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The code of an architecture, such as 90.
    Code(usize),
    /// PTX for an architecture and later ones.
    Ptx(usize),
}

impl Compiler {
    /// NVRTC from the first of some files that is one.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`].
    pub fn load(files: &[OsString]) -> Result<Self, Error> {
        let library = first_of(files.iter().map(OsString::as_os_str));
        let library = library.map_err(|tried| Error::NoCompiler { tried })?;
        Self::of(library).map_err(|error| Error::NoCompiler { tried: vec![error.to_string()] })
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> (i32, i32) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: two places.
        unsafe { (self.version)(&raw mut major, &raw mut minor) };
        (major, minor)
    }

    /// The target for a device of an architecture: its code, or PTX where the device is newer than the compiler.
    pub(crate) fn target(&self, architecture: usize) -> Result<Target, Error> {
        let mut count = 0;
        // SAFETY: a place, and then as many as it says.
        let known = unsafe {
            (self.arch_count)(&raw mut count);
            let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
            (self.arch_list)(known.as_mut_ptr());
            known
        };
        let newest =
            known.iter().copied().max().and_then(|own| usize::try_from(own).ok()).unwrap_or(0);
        let has = known.iter().any(|&own| usize::try_from(own) == Ok(architecture));
        match () {
            () if has => Ok(Target::Code(architecture)),
            () if newest != 0 && newest < architecture => Ok(Target::Ptx(newest)),
            () => Err(Error::Architecture { device: architecture, newest }),
        }
    }

    /// A kernel compiled.
    ///
    /// # Errors
    ///
    /// [`Error::Compile`], with what the compiler said.
    pub fn compiled(&self, text: &str, target: Target) -> Result<Vec<u8>, Error> {
        let refused = |log: &str| Error::Compile { log: log.into() };
        let text = CString::new(text).map_err(|_| refused("its text has a zero"))?;
        let architecture = match target {
            Target::Code(own) => format!("--gpu-architecture=sm_{own}"),
            Target::Ptx(own) => format!("--gpu-architecture=compute_{own}"),
        };
        // Products and sums are rounded each, as on the host.
        let options: Vec<CString> = [
            &architecture[..],
            "--fmad=false",
            "--std=c++17",
            "--device-as-default-execution-space",
        ]
        .into_iter()
        .filter_map(|own| CString::new(own).ok())
        .collect();
        let pointers: Vec<*const c_char> = options.iter().map(|own| own.as_ptr()).collect();
        let mut program = Made { compiler: self, program: std::ptr::null_mut() };
        // SAFETY: texts that end in zeros and live until the calls return; no headers; places for results, of the sizes
        // that the compiler says; the program is destroyed once.
        unsafe {
            let none = std::ptr::null();
            let name = c"simulcast.cu".as_ptr();
            if (self.create)(&raw mut program.program, text.as_ptr(), name, 0, none, none) != 0 {
                return Err(refused("no program was made of it"));
            }
            if (self.compile)(program.program, pointers.len() as c_int, pointers.as_ptr()) != 0 {
                let mut size = 0;
                (self.log_size)(program.program, &raw mut size);
                let mut log = vec![0_u8; size.max(1)];
                (self.log)(program.program, log.as_mut_ptr().cast());
                let log = CStr::from_bytes_until_nul(&log).unwrap_or_default();
                return Err(refused(&log.to_string_lossy()));
            }
            let (size_of, get) = match target {
                Target::Code(_) => (self.cubin_size, self.cubin),
                Target::Ptx(_) => (self.ptx_size, self.ptx),
            };
            let mut size = 0;
            (size_of)(program.program, &raw mut size);
            let mut code = vec![0_u8; size];
            if size == 0 || (get)(program.program, code.as_mut_ptr().cast()) != 0 {
                return Err(refused("the compiler gave no code"));
            }
            Ok(code)
        }
    }
}

/// A program of the compiler's, destroyed when it is dropped.
struct Made<'c> {
    compiler: &'c Compiler,
    program: Program,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: a program that was made, and is used no more.
            unsafe { (self.compiler.destroy)(&raw mut self.program) };
        }
    }
}
