//! Certificates that only tests need.

use std::path::Path;

impl super::Authority {
    /// A certificate that is signed, and nobody's.
    pub(crate) fn nobody(&self, stem: &Path, term: super::Term) -> Result<(), super::PkiError> {
        let mut params = super::params("somebody", Some("else"), term.begins(), term.ends());
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let super::Issued { certificate, key } = self.sign(params)?;
        let wanted = [
            (stem.with_extension("key"), key, super::PRIVATE),
            (stem.with_extension("crt"), certificate, super::PUBLIC),
        ];
        super::files::write(&wanted, super::Keep::What).map(|_| ())
    }
}
