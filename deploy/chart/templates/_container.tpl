{{/* What values change in a container of deploy/base, which is given as "container" and changed in place. */}}
{{- define "berth.container" -}}
{{- $container := .container -}}
{{- if .values.image }}{{ $_ := set $container "image" .values.image }}{{ end -}}
{{- if .of.resources }}{{ $_ := set $container "resources" .of.resources }}{{ end -}}
{{- range $container.env -}}
{{- if and $.values.logFormat (eq .name "BERTH_LOG_FORMAT") }}{{ $_ := set . "value" $.values.logFormat }}{{ end -}}
{{- end -}}
{{- if .of.env }}{{ $_ := set $container "env" (concat $container.env .of.env) }}{{ end -}}
{{- end -}}
{{/* And in a pod, the same way. */}}
{{- define "berth.pod" -}}
{{- if .values.imagePullSecrets }}{{ $_ := set .pod "imagePullSecrets" .values.imagePullSecrets }}{{ end -}}
{{- end -}}
