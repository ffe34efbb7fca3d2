//! Which certificate authorities are trusted.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt::Display;
use std::path::Path;

/// Those of a file, or, without one, those of the system. `option` is the name under which a URL names a file.
pub(crate) fn roots(ca: Option<&Path>, option: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| unusable(path, &error))?;
            }
        }
        None => {
            // Some systems have a broken certificate among their good ones.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(format!(
                    "the system trusts no certificate authority; name one with `?{option}=FILE`"
                ));
            }
        }
    }
    Ok(roots)
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, &error))?;
    let all = read.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(path, &error))?;
    if all.is_empty() { Err(unusable(path, &"it holds no certificate")) } else { Ok(all) }
}

pub(crate) fn unusable(path: &Path, error: &dyn Display) -> String {
    format!("`{}` cannot be used: {error}", path.display())
}
