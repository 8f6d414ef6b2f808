-- How wrk says what came of a load: the last line, as JSON. Used by the other scripts, in this folder.

function done(summary, latency, requests)
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"p50_ms":%.4f,"p99_ms":%.4f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
