{{/* What values change in a container of deploy/base, which is given as "container" and changed in place. */}}
{{- define "berth.container" -}}
{{- $container := .container -}}
{{- if .values.image }}{{ $_ := set $container "image" .values.image }}{{ end -}}
{{- if .resources }}{{ $_ := set $container "resources" .resources }}{{ end -}}
{{- range $container.env -}}
{{- if and $.values.logFormat (eq .name "BERTH_LOG_FORMAT") }}{{ $_ := set . "value" $.values.logFormat }}{{ end -}}
{{- end -}}
{{- end -}}
