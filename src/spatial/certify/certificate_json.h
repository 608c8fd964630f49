#pragma once

// The file form of a certificate: one JSON object, numbers as they are, stages and buffers by their position.

#include <string>
#include <string_view>

#include "base/result.h"
#include "spatial/certify/certificate.h"

namespace tw::spatial {

std::string to_json(const Certificate& certificate);
// `subject` is the file, for refusals. Refuses what is no certificate: another form, a field missing, unknown or of the
// wrong kind.
Result<Certificate> certificate_from_json(std::string_view text, std::string_view subject);

std::string to_json(const StepCertificate& certificate);
Result<StepCertificate> step_certificate_from_json(std::string_view text, std::string_view subject);

Result<void> write_certificate(const Certificate& certificate, const std::string& path);
Result<void> write_certificate(const StepCertificate& certificate, const std::string& path);
Result<Certificate> read_certificate(const std::string& path);
Result<StepCertificate> read_step_certificate(const std::string& path);

}  // namespace tw::spatial
